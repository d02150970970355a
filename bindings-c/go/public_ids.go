package polyflake

// #cgo noescape polyflake_public_ids_new
// #cgo nocallback polyflake_public_ids_new
// #cgo noescape polyflake_public_ids_encode
// #cgo nocallback polyflake_public_ids_encode
// #cgo noescape polyflake_public_ids_decode
// #cgo nocallback polyflake_public_ids_decode
// #cgo noescape polyflake_public_key_generate
// #cgo nocallback polyflake_public_key_generate
// #include <polyflake.h>
import "C"

import (
	"runtime"
	"strings"
)

// PublicIDs converts IDs to public IDs, such as order_15ShV20Bxc6UJvKSQbDvo0J, and back. A public ID is a string that
// hides when and where the ID was issued. No table is needed to decode it. Get a PublicIDs from [NewPublicIDs]. Any
// number of goroutines may use it.
type PublicIDs struct {
	owner  *cPublicIDs
	prefix string
}

type cPublicIDs struct{ pointer *C.polyflake_public_ids }

// NewPublicIDs prepares public IDs with a prefix. The prefix is "" or consists of words of the characters a-z and 0-9,
// joined by _, with at most 24 characters in all. The first key is used for encoding, and every key for decoding. A
// string may contain several keys, separated by white space or commas. [GeneratePublicKey] generates a key.
//
// It returns [ErrInvalidOption] if a key or the prefix is invalid, if two keys have the same number or the same bytes,
// if no key is given, or if more than 16 are. The message shows no part of a key.
func NewPublicIDs(keys []string, prefix string) (*PublicIDs, error) {
	var pointer *C.polyflake_public_ids
	detail := newDetail()
	status := C.polyflake_public_ids_new(cText(strings.Join(keys, "\n")), cText(prefix), &pointer, &detail)
	if err := check(status, &detail); err != nil {
		return nil, err
	}
	owner := &cPublicIDs{pointer}
	runtime.AddCleanup(owner, func(c *C.polyflake_public_ids) { C.polyflake_public_ids_free(c) }, pointer)
	return &PublicIDs{owner, prefix}, nil
}

// GeneratePublicKey generates a key from the operating system's random bytes. Store the key as you store other secrets.
// number must be between 0 and 61. Public IDs identify their key by its number, so give each key a different one.
//
// It returns [ErrInvalidOption] for any other number.
func GeneratePublicKey(number uint) (string, error) {
	var text [C.POLYFLAKE_PUBLIC_KEY_SIZE]C.char
	detail := newDetail()
	// C's unsigned int may be smaller. The library rejects every number this large.
	number = min(number, 1<<31)
	status := C.polyflake_public_key_generate(C.uint(number), &text[0], C.size_t(len(text)), &detail)
	return goText(text[:]), check(status, &detail)
}

// Encode returns the public ID of an ID.
func (p *PublicIDs) Encode(id ID) string {
	var text [C.POLYFLAKE_PUBLIC_ID_SIZE]C.char
	status := C.polyflake_public_ids_encode(p.owner.pointer, C.uint64_t(id), &text[0], C.size_t(len(text)), nil)
	runtime.KeepAlive(p)
	if status != C.POLYFLAKE_OK {
		panic(Code(status)) // Memory was overwritten: nothing else can make this fail.
	}
	return goText(text[:])
}

// EncodeAll returns the public IDs of several IDs, such as those in a page of rows.
func (p *PublicIDs) EncodeAll(ids []ID) []string {
	texts := make([]string, len(ids))
	for n, id := range ids {
		texts[n] = p.Encode(id)
	}
	return texts
}

// Decode returns the ID from a public ID. A string that was not encoded with this prefix and one of these keys has a 1
// in 2^64 chance of decoding anyway.
//
// It returns [ErrInvalidID] for any other string, with the reason in the message.
func (p *PublicIDs) Decode(text string) (ID, error) {
	var id C.uint64_t
	detail := newDetail()
	status := C.polyflake_public_ids_decode(p.owner.pointer, cText(text), &id, &detail)
	runtime.KeepAlive(p)
	return ID(id), check(status, &detail)
}

// DecodeAll returns the IDs from several public IDs, or the error for the first string that is not a public ID.
func (p *PublicIDs) DecodeAll(texts []string) ([]ID, error) {
	ids := make([]ID, len(texts))
	for n, text := range texts {
		id, err := p.Decode(text)
		if err != nil {
			return nil, err
		}
		ids[n] = id
	}
	return ids, nil
}

// Prefix returns the prefix of the public IDs.
func (p *PublicIDs) Prefix() string {
	return p.prefix
}

// String returns a description with the prefix, but nothing about the keys.
func (p *PublicIDs) String() string {
	return "public IDs with the prefix " + p.prefix
}
