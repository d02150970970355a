package main

import (
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	bursts     = 15
	loadTime   = int64(100 * time.Millisecond)
	idsToCheck = 200_000
)

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

// timed takes IDs once before has returned, and returns the time from the first start to the last end.
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

type load struct {
	percent    float64 // of capacity
	processors float64 // CPU seconds per second
}

// fullLoad takes the IDs of a whole number of ticks, and begins when those of the current tick are used up: a generator
// that wastes none takes exactly these ticks.
func fullLoad(g generator, goroutines int) load {
	ticks := loadTime / g.tick
	var before time.Duration
	took := timed(g, room[:int(ticks)*g.capacity], goroutines, func() {
		g.take(room[:2*g.capacity])
		before = usedProcessorTime()
	})
	return load{
		percent:    100 * float64(ticks*g.tick) / float64(took),
		processors: float64(usedProcessorTime()-before) / float64(took),
	}
}

func usedProcessorTime() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

type findings struct {
	repeated, ids int
	aheadMs       int64
}

// checkIDs takes IDs as fast as possible, counts the repeated ones, and measures how far their time was ahead of the
// clock.
func checkIDs(g generator, goroutines int) findings {
	ids := room[:idsToCheck]
	ahead := make(chan int64)
	each := len(ids) / goroutines
	for part := range slices.Chunk(ids, each) {
		go func() {
			var most int64
			for i := 0; i < len(part); i += g.step {
				g.take(part[i : i+g.step])
				// The last ID of a batch is the furthest ahead.
				most = max(most, g.unixMs(part[i+g.step-1])-time.Now().UnixMilli())
			}
			ahead <- most
		}()
	}
	found := findings{ids: len(ids)}
	for range goroutines {
		found.aheadMs = max(found.aheadMs, <-ahead)
	}
	slices.Sort(ids)
	found.repeated = len(ids) - len(slices.Compact(ids))
	return found
}
