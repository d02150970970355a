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
	// Few enough IDs that a sequence of 12 bits does not run out in a burst.
	batch       = 1000
	millisecond = int64(time.Millisecond)
	// Its sequence is too large for a batch to use up.
	wideLayout = "timestamp:38|node:1|sequence:25@1735689600000/1ms"
)

// generator is ours, another package's, or a floor. Its loop is in take, so that its calls are direct.
type generator struct {
	name     string
	take     func(ids []id) // fills ids
	make     func(n int)    // the same for a call that allocates its own slice; nil for others
	step     int            // the fewest IDs it takes
	burst    int            // IDs in a burst, which fit in a tick
	tick     int64          // ns
	capacity int            // IDs per tick
	unixMs   func(id id) int64
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

// ours has the layout twitter, with 12 sequence bits, unless another is given.
func ours(name string, take func(ids []id)) generator {
	return generator{
		name: name, take: take, step: 1, burst: batch, tick: millisecond,
		capacity: 4096, unixMs: func(id id) int64 { return int64(id>>22) + 1288834974657 },
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

func polyflakeGoClock() generator {
	now := func() (time.Time, error) { return time.Now(), nil }
	ids := must(polyflake.New(polyflake.Node(3), polyflake.Clock(now)))
	g := ours("polyflake NextID, clock in Go", func(into []id) {
		for i := range into {
			id, err := ids.NextID()
			check(err)
			into[i] = id
		}
	})
	return g
}

func polyflakeBatches() []generator {
	var all []generator
	for _, layout := range []string{"twitter", wideLayout} {
		ids := must(polyflake.New(polyflake.WithLayout(layout), polyflake.Node(0)))
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
		for _, g := range []generator{fill, nextIDs} {
			g.step, g.burst = batch, 3*batch
			if layout == wideLayout {
				g.name += ", 25 sequence bits"
				g.burst, g.capacity = 20*batch, 1<<25
				g.unixMs = func(id id) int64 { return int64(id>>26) + 1735689600000 }
			}
			all = append(all, g)
		}
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
			step: 1, burst: batch, tick: millisecond, capacity: 4096,
			unixMs: func(id id) int64 { return int64(id>>22) + snowflake.Epoch },
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
			step: 1, burst: batch, tick: millisecond, capacity: 4096,
			unixMs: func(id id) int64 { return sony2.ToTime(int64(id)).UnixMilli() },
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
			step: 1, burst: 250, tick: 10 * millisecond, capacity: 256,
			unixMs: func(id id) int64 { return int64(sonyflake.ElapsedTime(uint64(id))/1e6) + 1409529600000 },
		},
	}
}

// decoders take IDs apart, into the time, the node and the sequence number.
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
			step: 1, burst: batch, tick: millisecond,
		},
		{
			name: "bwmarrin/snowflake ID.Time, Node and Step",
			take: func(into []id) {
				for i := range into {
					one := snowflake.ID(ids[i])
					into[i] = id(one.Time() ^ one.Node() ^ one.Step())
				}
			},
			step: 1, burst: batch, tick: millisecond,
		},
	}
}
