package main

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

const bursts = 15

// room is where all measured IDs are written.
var room = make([]id, 1<<19)

// timeBursts returns the ns per ID, in bursts that fit in a tick.
func timeBursts(g generator, goroutines int) float64 {
	var took time.Duration
	for range bursts {
		took += timed(g, room[:g.burst], goroutines, func() { waitForTick(g.tick) })
	}
	return float64(took) / float64(bursts*g.burst)
}

// waitForTick returns at the start of a tick of the wall clock; tick is in ns.
func waitForTick(tick int64) {
	for start := time.Now().UnixNano() / tick; time.Now().UnixNano()/tick == start; {
	}
}

// timed takes IDs once before has returned, and returns the time from the first start to the last finish.
func timed(g generator, ids []id, goroutines int, before func()) time.Duration {
	if goroutines == 1 {
		before()
		start := time.Now()
		if g.make != nil {
			g.make(len(ids))
		} else {
			g.take(ids)
		}
		return time.Since(start)
	}
	var ready, begin atomic.Bool
	ended := make(chan time.Time, 1)
	half := len(ids) / 2
	go func() {
		ready.Store(true)
		for !begin.Load() { // spins, since waking up would take longer than a burst
		}
		g.take(ids[half:])
		ended <- time.Now()
	}()
	for !ready.Load() {
	}
	before()
	start := time.Now()
	begin.Store(true)
	g.take(ids[:half])
	end := time.Now()
	if other := <-ended; other.After(end) {
		end = other
	}
	return end.Sub(start)
}

// writeIDs takes IDs as fast as possible, and writes them to a file, with a clock reading after each block.
func writeIDs(g generator, goroutines, n int, file string) {
	block := max(g.step, 64)
	words := make([]uint64, n/block*(block+1))
	var taken sync.WaitGroup
	for part := range slices.Chunk(words, len(words)/goroutines) {
		taken.Add(1)
		go func() {
			defer taken.Done()
			into := make([]id, block)
			for at := range slices.Chunk(part, block+1) {
				g.take(into)
				for i, id := range into {
					at[i] = uint64(id)
				}
				at[block] = uint64(time.Now().UnixMicro())
			}
		}()
	}
	taken.Wait()
	fmt.Println(block, goroutines)
	check(os.WriteFile(file, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words)), 0o600))
	fmt.Println()
}
