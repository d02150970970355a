package main

import (
	"time"

	"github.com/bwmarrin/snowflake"
	polyflake "github.com/polyflake/polyflake/bindings-c/go"
	"github.com/sony/sonyflake"
	sonyflake2 "github.com/sony/sonyflake/v2"
)

type id = polyflake.ID

const (
	// Few enough IDs that a 12-bit sequence does not run out in a burst.
	batch       = 1000
	millisecond = int64(time.Millisecond)
)

// generator is Polyflake's, another package's, or a floor. Its loop is in take, so that its calls are direct.
type generator struct {
	name  string
	take  func(ids []id) // fills ids
	make  func(n int)    // the same for a call that allocates its own slice; nil for others
	step  int            // the fewest IDs it takes; 0 if they are not checked
	burst int            // IDs in a burst, which fit in a tick
	tick  int64          // ns
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// ours uses the layout twitter, with 12 sequence bits, unless another layout is given.
func ours(name string, take func(ids []id)) generator {
	return generator{
		name: name, take: take, step: 1, burst: batch, tick: millisecond,
	}
}

func polyflakeSingle() generator {
	ids := must(polyflake.New(polyflake.Node(1)))
	return ours("polyflake NextID", func(into []id) {
		for i := range into {
			id, err := ids.NextID()
			check(err)
			into[i] = id
		}
	})
}

func polyflakeBatches() []generator {
	ids := must(polyflake.New(polyflake.Node(0)))
	fill := ours("polyflake Fill", func(into []id) {
		for i := 0; i < len(into); i += batch {
			check(ids.Fill(into[i : i+batch]))
		}
	})
	nextIDs := ours("polyflake NextIDs", func(into []id) {
		for i := 0; i < len(into); i += batch {
			made = must(ids.NextIDs(batch))
			copy(into[i:], made)
		}
	})
	nextIDs.make = func(n int) {
		for range n / batch {
			made = must(ids.NextIDs(batch))
		}
	}
	all := []generator{fill, nextIDs}
	for i := range all {
		all[i].step, all[i].burst = batch, 3*batch
	}
	return all
}

func peers() []generator {
	bwmarrin := must(snowflake.NewNode(1))
	sony1 := must(sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return 1, nil }}))
	sony2 := must(sonyflake2.New(sonyflake2.Settings{
		BitsSequence: 12, BitsMachineID: 10, TimeUnit: time.Millisecond, MachineID: func() (int, error) { return 1, nil },
	}))
	return []generator{
		{
			name: "bwmarrin/snowflake Generate",
			take: func(into []id) {
				for i := range into {
					into[i] = id(bwmarrin.Generate())
				}
			},
			step: 1, burst: batch, tick: millisecond,
		},
		{
			name: "sony/sonyflake/v2 NextID",
			take: func(into []id) {
				for i := range into {
					next, err := sony2.NextID()
					check(err)
					into[i] = id(next)
				}
			},
			step: 1, burst: batch, tick: millisecond,
		},
		{
			name: "sony/sonyflake NextID",
			take: func(into []id) {
				for i := range into {
					next, err := sony1.NextID()
					check(err)
					into[i] = id(next)
				}
			},
			step: 1, burst: 250, tick: 10 * millisecond,
		},
	}
}

// decoders split IDs into the time, the node and the sequence number.
func decoders() []generator {
	layout := must(polyflake.ParseLayout("twitter"))
	ids := make([]id, batch)
	for i := range ids {
		ids[i] = 1541815603606036480 + id(i)*86_400_007<<12
	}
	return []generator{
		{
			name: "polyflake Layout.Decode",
			take: func(into []id) {
				for i := range into {
					decoded, err := layout.Decode(ids[i])
					check(err)
					into[i] = id(uint64(decoded.TimestampMs) ^ decoded.Node ^ decoded.Sequence)
				}
			},
			burst: batch, tick: millisecond,
		},
		{
			name: "bwmarrin/snowflake ID.Time, Node and Step",
			take: func(into []id) {
				for i := range into {
					one := snowflake.ID(ids[i])
					into[i] = id(one.Time() ^ one.Node() ^ one.Step())
				}
			},
			burst: batch, tick: millisecond,
		},
	}
}
