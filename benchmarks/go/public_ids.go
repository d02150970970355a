package main

import (
	"github.com/google/uuid"
	polyflake "github.com/polyflake/polyflake/bindings-c/go"
	hashids "github.com/speps/go-hashids/v2"
	sqids "github.com/sqids/sqids-go"
)

// text keeps the last string on the heap.
var text string

// codec is a way to show an ID to outsiders.
type codec struct {
	name   string
	encode func(id id) string
	decode func(text string) id
}

func codecs() []codec {
	orders := must(polyflake.NewPublicIDs([]string{"pfk_10kvEGTqNtUTXFUlMnM4wIa"}, "order"))
	sqid := must(sqids.New())
	hashid := must(hashids.NewWithData(&hashids.HashIDData{Alphabet: hashids.DefaultAlphabet, Salt: "salt"}))
	return []codec{
		{
			name:   "polyflake PublicIDs",
			encode: orders.Encode,
			decode: func(text string) id { return must(orders.Decode(text)) },
		},
		{
			name:   "sqids/sqids-go",
			encode: func(id id) string { return must(sqid.Encode([]uint64{uint64(id)})) },
			decode: func(text string) id { return id(sqid.Decode(text)[0]) },
		},
		{
			name:   "speps/go-hashids/v2",
			encode: func(id id) string { return must(hashid.EncodeInt64([]int64{int64(id)})) },
			decode: func(text string) id { return id(must(hashid.DecodeInt64WithError(text))[0]) },
		},
		{
			name:   "google/uuid String, Parse",
			encode: func(id id) string { return uuid.UUID(bytesOf(id)).String() },
			decode: func(text string) id { return id(must(uuid.Parse(text))[0]) },
		},
	}
}

func bytesOf(id id) (bytes [16]byte) {
	for i := range bytes {
		bytes[i] = byte(id >> (8 * (i % 8)))
	}
	return bytes
}

// encoder and decoder return these calls as generators, which are timed but not checked.
func (c codec) encoder() generator {
	ids := shownIDs()
	return c.timed(func(into []id) {
		for i := range into {
			text = c.encode(ids[i])
		}
	})
}

func (c codec) decoder() generator {
	var texts []string
	for _, id := range shownIDs() {
		texts = append(texts, c.encode(id))
	}
	return c.timed(func(into []id) {
		for i := range into {
			into[i] = c.decode(texts[i])
		}
	})
}

func (c codec) timed(take func(into []id)) generator {
	return generator{name: c.name, take: take, burst: batch, tick: millisecond}
}

func shownIDs() []id {
	ids := make([]id, batch)
	for i := range ids {
		ids[i] = 1541815603606036480 + id(i)*0x1234567891
	}
	return ids
}
