package polyflake

// #cgo noescape polyflake_sequences_open
// #cgo nocallback polyflake_sequences_open
// #cgo noescape polyflake_go_sequences_next_id
// #cgo nocallback polyflake_go_sequences_next_id
// #cgo noescape polyflake_go_sequences_try_next_id
// #cgo nocallback polyflake_go_sequences_try_next_id
// #cgo noescape polyflake_go_sequences_next_ids
// #cgo nocallback polyflake_go_sequences_next_ids
// #cgo noescape polyflake_sequences_stats
// #cgo nocallback polyflake_sequences_stats
// #include "shim.h"
import "C"

import (
	"context"
	"reflect"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"
)

// SequenceKey is the type of a key in [Sequences]: a string in UTF-8, or an integer. The integer 5 and the string "5"
// are different keys; the int 5 and the uint64 5 are the same key.
type SequenceKey interface {
	~string | ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Sequences keep a separate count for each key: 1, 2, 3 and so on for "alice", and the same for "bob". Use them to
// number the messages in an inbox or the versions of a document. Get them from [OpenSequences]. Any number of
// goroutines may use them at the same time.
//
// A key's numbers increase, and none is issued twice, by any process, as long as the store does not lose a write it has
// acknowledged. A key skips numbers if it was evicted from memory and is used again, or if it is new in a section that
// has evicted keys. After a process exits without calling [Sequences.Close], all keys in a section continue above the
// section's bound, which is at most two steps above its highest number.
//
// Only the process that holds the lease issues numbers. In other processes, calls return [ErrLeaseUnavailable]. The
// message gives the holder's label in backticks, as set in that process's [SequencesStore].
//
// The zero Sequences is closed. A Sequences must not be copied.
type Sequences[K SequenceKey] struct {
	// nil once the Sequences are closed. A call holds the cSequences that it found here until it returns.
	open atomic.Pointer[cSequences]
	name string
}

// cSequences owns the C object, as cSnowflake does.
type cSequences struct {
	pointer *C.polyflake_sequences
	address C.uintptr_t // the same address: see shim.h
	// Keeps a Go pointer in the struct: see cSnowflake.
	name  string
	store storeCalls
}

// SequencesOption is an option of [OpenSequences]. A later value replaces an earlier one, except for [SequencesStore].
type SequencesOption func(*storeSettings) error

// OpenSequences opens the sequences with the given name, which must have 1 to 100 characters. It creates them if the
// store does not have them, and waits for the lease for at most the wait time set in the store's address (35 s by
// default: the TTL plus 5 s).
//
//	inbox, err := polyflake.OpenSequences[string]("inbox", polyflake.SequencesStore("postgres://host/chat"))
//	number, err := inbox.NextID("alice")
//
// All Sequences in one process with the same store and name share their counts, even if their key types differ. Events
// are logged: see [LogLeases].
//
// It returns [ErrInvalidOption] if an option is invalid, if no store is given, if the sequences were created with a
// different number of sections, or if this process already uses them with different options. It returns
// [ErrLeaseUnavailable] if another process, named in the message, holds the lease, or if the store cannot be reached.
func OpenSequences[K SequenceKey](name string, options ...SequencesOption) (*Sequences[K], error) {
	owner, err := openSequences(name, options)
	if err != nil {
		return nil, err
	}
	made := &Sequences[K]{name: name}
	made.open.Store(owner)
	return made, nil
}

// OpenSequencesContext is like [OpenSequences], but stops waiting and returns the context's error when the context is
// done. The attempt then continues in the background, on one thread, and closes the Sequences if it succeeds. If the
// context is done before the call, nothing is opened.
func OpenSequencesContext[K SequenceKey](
	ctx context.Context, name string, options ...SequencesOption,
) (*Sequences[K], error) {
	return openContext(ctx, func() (*Sequences[K], error) { return OpenSequences[K](name, options...) })
}

func openSequences(name string, options []SequencesOption) (*cSequences, error) {
	s := storeSettings{C.polyflake_options_new(), defaultMaxWait}
	defer C.polyflake_options_free(s.options)
	listen()
	for _, option := range append([]SequencesOption{SequencesSet("name", name)}, options...) {
		if err := option(&s); err != nil {
			return nil, err
		}
	}
	detail := newDetail()
	var opened *C.polyflake_sequences
	if err := check(C.polyflake_sequences_open(s.options, &opened, &detail), &detail); err != nil {
		return nil, err
	}
	owner := &cSequences{opened, C.uintptr_t(uintptr(unsafe.Pointer(opened))), name, newStoreCalls(s.maxWait)}
	runtime.AddCleanup(owner, func(c *C.polyflake_sequences) { C.polyflake_sequences_free(c) }, opened)
	return owner, nil
}

// SequencesSet sets an option by name to a string, such as a value from a configuration file. Names and values are the
// same in every language. The names are store, sections, step, max_keys and max_wait_ms. [OpenSequences] returns
// [ErrInvalidOption] for any other name.
func SequencesSet(name, value string) SequencesOption {
	return func(s *storeSettings) error {
		return s.set(name, value)
	}
}

// SequencesStore sets the address of the store, such as "postgres://host/chat?label=10.0.0.7:8080". Exactly one store
// is required. While this process holds the lease, other processes are shown the label, which names the host and the
// process by default.
func SequencesStore(address string) SequencesOption {
	return SequencesSet("store", address)
}

// SequencesSections sets how many bounds the store keeps, over which the keys are spread: 1 to 16,384. The default is
// 1,024. The number cannot be changed later.
func SequencesSections(sections uint64) SequencesOption {
	return SequencesSet("sections", strconv.FormatUint(sections, 10))
}

// SequencesStep sets the size of a step in numbers: 1 to 1,000,000,000. The default is 10,000. A bound is moved to two
// steps above its section's highest number. With a larger step, the store is asked less often, and more numbers are
// skipped when a process exits without calling [Sequences.Close].
func SequencesStep(numbers uint64) SequencesOption {
	return SequencesSet("step", strconv.FormatUint(numbers, 10))
}

// SequencesMaxKeys (max_keys) sets how many keys stay in memory: 1 to 1,000,000,000. The default is 1,000,000. Each key
// takes at most 40 bytes, no matter how long it is. If there are more keys, the least used are evicted.
func SequencesMaxKeys(keys uint64) SequencesOption {
	return SequencesSet("max_keys", strconv.FormatUint(keys, 10))
}

// SequencesMaxWait (max_wait_ms) sets the longest time that a call waits for the store. The value must be a whole
// number of milliseconds; the default is 10 s.
func SequencesMaxWait(d time.Duration) SequencesOption {
	return SequencesSet("max_wait_ms", milliseconds(d))
}

// NextID returns the key's next number, usually from memory. If the key's section has reached its bound or the lease
// has expired, it waits for the store, for at most [SequencesMaxWait].
//
// It returns [ErrLeaseUnavailable] if another process, named in the message, now holds the lease; [ErrLeaseLost] if the
// lease could not be renewed and is not regained within that time; [ErrCounterUnavailable] if the store does not move
// the bound within that time, and at once if waiting would not help (the store refuses or has lost writes, or the
// section has reached 2^63-1); [ErrInvalidOption] for a string that is not UTF-8; and [ErrClosed] after
// [Sequences.Close].
func (s *Sequences[K]) NextID(key K) (ID, error) {
	open := s.open.Load()
	if open == nil {
		return 0, errClosed()
	}
	return open.next(context.Background(), keyOf(key))
}

// NextIDContext is like [Sequences.NextID], but stops waiting and returns the context's error when the context is done.
// If the context is done before the call, it takes no number. A number taken for a call whose context is done is
// lost, never repeated.
func (s *Sequences[K]) NextIDContext(ctx context.Context, key K) (ID, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	open := s.open.Load()
	if open == nil {
		return 0, errClosed()
	}
	return open.next(ctx, keyOf(key))
}

// TryNextID returns the key's next number without waiting for the store. It returns the same errors as
// [Sequences.NextID], but at once. If the store is needed, the library queries it in the background.
func (s *Sequences[K]) TryNextID(key K) (ID, error) {
	open := s.open.Load()
	if open == nil {
		return 0, errClosed()
	}
	return open.tryNext(keyOf(key))
}

// NextIDs returns one number per key, in the order of the keys. This is much faster than calling [Sequences.NextID] for
// each key. A key that occurs twice gets two numbers, the second greater than the first. After an error, the numbers
// that the call had already taken are lost, never repeated.
//
// It returns the same errors as NextID. If a string is not UTF-8, no number is taken.
func (s *Sequences[K]) NextIDs(keys []K) ([]ID, error) {
	return s.NextIDsContext(context.Background(), keys)
}

// NextIDsContext is like [Sequences.NextIDs], but stops waiting when the context is done, as [Sequences.NextIDContext]
// does.
func (s *Sequences[K]) NextIDsContext(ctx context.Context, keys []K) ([]ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	open := s.open.Load()
	if open == nil {
		return nil, errClosed()
	}
	// The strings are concatenated, because an array of Go pointers must not be passed to C.
	var kind C.int
	var texts []byte
	values := make([]C.uint64_t, len(keys))
	for n, key := range keys {
		key := keyOf(key)
		kind, values[n] = key.kind, key.value
		texts = append(texts, key.text...)
	}
	return bounded(ctx, &open.store, func() ([]ID, error) {
		return open.nextAll(kind, values, texts)
	}, func() ([]ID, error) {
		numbers := make([]ID, len(values))
		rest := texts // the call may still be reading them
		for n, value := range values {
			key := sequenceKey{kind: kind, value: value}
			if kind == C.POLYFLAKE_KEY_TEXT {
				key.text, rest = string(rest[:value]), rest[value:]
			}
			var err error
			if numbers[n], err = open.tryNext(key); err != nil {
				return nil, err
			}
		}
		return numbers, nil
	})
}

// Name returns the name of the sequences.
func (s *Sequences[K]) Name() string {
	return s.name
}

// SequencesStats holds statistics for monitoring. They cover the whole process since it first opened Sequences with
// this name. Get them from [Sequences.Stats].
type SequencesStats struct {
	// Keys is how many keys are in memory.
	Keys uint64
	// Evicted is how many keys were evicted to make room for others.
	Evicted uint64
	// Moves is how many times bounds were moved in the store.
	Moves uint64
	// Waits is how many times a call waited or gave up.
	Waits uint64
	// TimeLeft is how much longer numbers may be issued if the lease is not renewed; 0 if another process holds it.
	TimeLeft time.Duration
}

// Stats returns the statistics for monitoring. It returns [ErrClosed] after [Sequences.Close].
func (s *Sequences[K]) Stats() (SequencesStats, error) {
	open := s.open.Load()
	if open == nil {
		return SequencesStats{}, errClosed()
	}
	return open.stats()
}

// Close closes the Sequences. From then on, calls return [ErrClosed], even those that are waiting. Closing the last
// Sequences with a given name in this process stores each section's highest number, above which its keys then continue,
// and releases the lease. This waits for the store, for at most 10 s. The garbage collector frees the memory, even if
// the Sequences are never closed. Close never fails. Closing again does nothing.
func (s *Sequences[K]) Close() error {
	if open := s.open.Swap(nil); open != nil {
		close(open.store.closed) // first, because the store may be slow
		C.polyflake_sequences_close(open.pointer)
		runtime.KeepAlive(open)
	}
	return nil
}

// sequenceKey holds the parts of a key that C needs.
type sequenceKey struct {
	kind C.int
	// The integer, or the length of the string.
	value C.uint64_t
	text  string
}

func keyOf[K SequenceKey](key K) sequenceKey {
	switch value := reflect.ValueOf(key); {
	case value.CanInt():
		return sequenceKey{kind: C.POLYFLAKE_KEY_INT, value: C.uint64_t(value.Int())}
	case value.CanUint():
		return sequenceKey{kind: C.POLYFLAKE_KEY_UINT, value: C.uint64_t(value.Uint())}
	default:
		return sequenceKey{kind: C.POLYFLAKE_KEY_TEXT, value: C.uint64_t(value.Len()), text: value.String()}
	}
}

func (c *cSequences) next(ctx context.Context, key sequenceKey) (ID, error) {
	number, err := c.tryNext(key)
	if err == nil {
		return number, nil
	}
	switch err.(*Error).Code {
	case ErrCounterUnavailable, ErrLeaseLost, ErrLeaseUnavailable:
		return c.nextLater(ctx, key)
	default:
		return 0, err
	}
}

// nextLater waits for the store. It is separate because its closures would cost next an allocation.
func (c *cSequences) nextLater(ctx context.Context, key sequenceKey) (ID, error) {
	return bounded(ctx, &c.store,
		func() (ID, error) { return c.nextInThread(key) }, func() (ID, error) { return c.tryNext(key) })
}

func (c *cSequences) nextInThread(key sequenceKey) (ID, error) {
	text := (*C.char)(unsafe.Pointer(unsafe.StringData(key.text)))
	result := C.polyflake_go_sequences_next_id(c.address, key.kind, key.value, text)
	runtime.KeepAlive(c)
	if result.failure != nil {
		return 0, failed(result.failure)
	}
	return ID(result.id), nil
}

func (c *cSequences) tryNext(key sequenceKey) (ID, error) {
	text := (*C.char)(unsafe.Pointer(unsafe.StringData(key.text)))
	result := C.polyflake_go_sequences_try_next_id(c.address, key.kind, key.value, text)
	runtime.KeepAlive(c)
	if result.failure != nil {
		return 0, failed(result.failure)
	}
	return ID(result.id), nil
}

func (c *cSequences) nextAll(kind C.int, values []C.uint64_t, texts []byte) ([]ID, error) {
	numbers := make([]ID, len(values))
	failure := C.polyflake_go_sequences_next_ids(
		c.address, kind, C.size_t(len(values)), unsafe.SliceData(values),
		(*C.char)(unsafe.Pointer(unsafe.SliceData(texts))),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(numbers))),
	)
	runtime.KeepAlive(c)
	if failure != nil {
		return nil, failed(failure)
	}
	return numbers, nil
}

func (c *cSequences) stats() (SequencesStats, error) {
	read := C.polyflake_sequences_counts{size: C.sizeof_polyflake_sequences_counts}
	detail := newDetail()
	err := check(C.polyflake_sequences_stats(c.pointer, &read, &detail), &detail)
	runtime.KeepAlive(c)
	return SequencesStats{
		Keys: uint64(read.keys), Evicted: uint64(read.evicted), Moves: uint64(read.moves), Waits: uint64(read.waits),
		TimeLeft: duration(uint64(read.time_left_ms)),
	}, err
}
