// Package polyflake makes Snowflakes: 64-bit, time-ordered, unique IDs, in every layout of the field.
//
//	ids, err := polyflake.New(polyflake.Node(7))
//	id, err := ids.NextID()
//
// It is a binding of the C library libpolyflake, which pkg-config must find when a program is built and the loader
// when it runs. Every other language of Polyflake has the same options, errors and guarantees.
//
// Times are instants of Unix time, leap seconds not counted.
package polyflake

// #cgo pkg-config: polyflake
// #cgo noescape polyflake_snowflake_node
// #cgo nocallback polyflake_snowflake_node
// #cgo noescape polyflake_check_batch
// #cgo nocallback polyflake_check_batch
// #cgo nocallback polyflake_go_next_id_or_zero
// #include "shim.h"
import "C"

import (
	"fmt"
	"iter"
	"runtime"
	"runtime/cgo"
	"sync/atomic"
	"time"
	"unsafe"
)

func init() {
	// Between ABIs, calls mean other things: better to stop here than to hand out wrong IDs.
	if abi := C.polyflake_abi_version(); abi != C.POLYFLAKE_ABI_VERSION {
		panic(fmt.Sprintf("polyflake: this program was built for version %d of the ABI, and the library that was "+
			"loaded has %d: build it anew", C.POLYFLAKE_ABI_VERSION, abi))
	}
}

// MaxBatch is the most IDs that [Snowflake.NextIDs] gives at once; [Snowflake.Fill] has no such bound.
const MaxBatch = C.POLYFLAKE_MAX_BATCH

// Version is the version of the library, such as "0.1.0".
func Version() string {
	return C.GoString(C.polyflake_version())
}

// Snowflake is a generator of IDs, from [New]. Any number of goroutines may use it at once: no ID of it repeats, and
// each is greater than every ID whose call returned before this call began. A goroutine that waits in it holds no
// processor.
//
// The zero Snowflake is a closed one. A Snowflake must not be copied.
type Snowflake struct {
	// nil once closed. A call holds the cSnowflake that it found here until it returns.
	open   atomic.Pointer[cSnowflake]
	layout Layout
	node   uint64
}

// cSnowflake owns the C object. Only the garbage collector frees it, once no Snowflake and no call refers to the
// cSnowflake, so a call in progress never uses freed memory, at no cost per ID.
type cSnowflake struct {
	address     C.uintptr_t // of the polyflake_snowflake; see shim.h
	hasOwnClock bool
	// Keeps a Go pointer in the struct: the allocator packs pointer-free structs together, and a cleanup would then
	// wait for all of them.
	layout Layout
}

// New makes a Snowflake.
//
//	polyflake.New(polyflake.NodeFields(map[string]uint64{"datacenter": 1, "worker": 7}))
//	polyflake.New(polyflake.WithLayout("sonyflake2"), polyflake.Node(7), polyflake.MaxAhead(50*time.Millisecond))
//
// On a built-in clock, the Snowflakes of a process share one cursor, so that none repeats another's IDs, where their
// epoch, their tick, the places and widths of timestamp and sequence, and their node's bits in their place are the same,
// whatever the layouts are called. The first ID of a new cursor may wait for the next tick. Layouts that split the bits
// in other ways are as two systems: nothing keeps their IDs apart.
//
// It gives [ErrInvalidLayout], [ErrUnknownLayout], [ErrInvalidNode], or [ErrInvalidOption], also where [MaxAhead] or
// [MaxBackward] differ from those that a shared cursor was made with, or that cursor stands in another state file, or
// in none. With [State] it also gives [ErrStateFile], or [ErrClockFailed] for a clock of the caller's, and takes about a
// second where the file is new, or the machine was started within that time.
func New(options ...Option) (*Snowflake, error) {
	s := settings{options: C.polyflake_options_new()}
	defer C.polyflake_options_free(s.options)
	for _, option := range options {
		if err := option(&s); err != nil {
			return nil, err
		}
	}

	detail := newDetail()
	var owned resources
	if s.clock != nil {
		owned.clock = cgo.NewHandle(s.clock)
		if err := check(C.polyflake_go_set_clock(s.options, C.uintptr_t(owned.clock), &detail), &detail); err != nil {
			owned.free()
			return nil, err
		}
	}
	result := C.polyflake_go_new(s.options)
	if result.failure != nil {
		owned.free() // first, since a panic of the clock goes on in failed
		return nil, failed(result.failure)
	}
	owned.snowflake = result.snowflake
	made, err := wrap(owned.snowflake, s.clock != nil)
	if err != nil {
		owned.free()
		return nil, err
	}
	runtime.AddCleanup(made.open.Load(), resources.free, owned)
	return made, nil
}

func wrap(c *C.polyflake_snowflake, hasOwnClock bool) (*Snowflake, error) {
	text, err := layoutText(C.polyflake_snowflake_layout(c))
	if err != nil {
		return nil, err
	}
	layout, err := ParseLayout(text)
	if err != nil {
		return nil, err
	}
	detail := newDetail()
	var node C.uint64_t
	if err := check(C.polyflake_snowflake_node(c, &node, &detail), &detail); err != nil {
		return nil, err
	}
	made := &Snowflake{layout: layout, node: uint64(node)}
	made.open.Store(&cSnowflake{C.uintptr_t(uintptr(unsafe.Pointer(c))), hasOwnClock, layout})
	return made, nil
}

// resources are what a cSnowflake owns outside Go's memory.
type resources struct {
	snowflake *C.polyflake_snowflake
	clock     cgo.Handle // 0 for a built-in clock
}

func (r resources) free() {
	C.polyflake_snowflake_free(r.snowflake)
	if r.clock != 0 {
		r.clock.Delete()
	}
}

// NextID gives the next ID. Where the tick's sequence is used up it waits, for at most [MaxWait] of real time.
//
// It gives [ErrSequenceExhausted] or [ErrClockMovedBackwards] where that was not enough (a step back past
// [MaxBackward] does not wait), [ErrTimeOutOfRange], [ErrClockFailed], [ErrStateFile], or [ErrClosed].
func (s *Snowflake) NextID() (ID, error) {
	c := s.open.Load()
	if c == nil {
		return 0, errClosed()
	}
	if !c.hasOwnClock {
		id := C.polyflake_go_next_id_or_zero(c.address)
		runtime.KeepAlive(c)
		if id == 0 {
			return s.TryNextID() // says why, and does not wait a second time; there may be an ID by now
		}
		return ID(id), nil
	}
	// What the clock fails with must not be lost with a first call that only says 0.
	result := C.polyflake_go_next_id(c.address)
	runtime.KeepAlive(c)
	if result.failure != nil {
		return 0, failed(result.failure)
	}
	return ID(result.id), nil
}

// TryNextID gives the next ID, or the error of [Snowflake.NextID] at once where there is none yet.
func (s *Snowflake) TryNextID() (ID, error) {
	c := s.open.Load()
	if c == nil {
		return 0, errClosed()
	}
	result := C.polyflake_go_try_next_id(c.address)
	runtime.KeepAlive(c)
	if result.failure != nil {
		return 0, failed(result.failure)
	}
	return ID(result.id), nil
}

// NextIDs gives the next n IDs, 1 to [MaxBatch], in order: far faster than as many calls of [Snowflake.NextID]. It waits
// for at most [MaxWait] of real time between two runs of them. An error part-way loses the IDs it had taken, and
// never repeats them.
//
// Its errors are those of NextID, and [ErrInvalidOption] for another n.
func (s *Snowflake) NextIDs(n int) ([]ID, error) {
	detail := newDetail()
	if err := check(C.polyflake_check_batch(C.int64_t(n), &detail), &detail); err != nil {
		return nil, err
	}
	ids := make([]ID, n)
	if err := s.Fill(ids); err != nil {
		return nil, err
	}
	return ids, nil
}

// Fill is [Snowflake.NextIDs] into a slice that is there already, of any length. After an error, the slice's content
// means nothing.
func (s *Snowflake) Fill(ids []ID) error {
	c := s.open.Load()
	if c == nil {
		return errClosed()
	}
	failure := C.polyflake_go_fill(c.address, C.size_t(len(ids)), (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(ids))))
	runtime.KeepAlive(c)
	return failed(failure)
}

// All gives one ID of [Snowflake.NextID] after the other, without end. It ends after an error; to go on, range again.
//
//	for id, err := range ids.All() {
//		if err != nil {
//			return err
//		}
//		...
//	}
func (s *Snowflake) All() iter.Seq2[ID, error] {
	return func(yield func(ID, error) bool) {
		for {
			id, err := s.NextID()
			if !yield(id, err) || err != nil {
				return
			}
		}
	}
}

// Decode takes an ID apart by the Snowflake's layout; see [Layout.Decode]. It works after [Snowflake.Close] too.
func (s *Snowflake) Decode(id ID) (Decoded, error) {
	return s.layout.Decode(id)
}

// Layout is the layout of the IDs.
func (s *Snowflake) Layout() Layout {
	return s.layout
}

// Node is all node fields joined, from the highest to the lowest.
func (s *Snowflake) Node() uint64 {
	return s.node
}

// Stats is what an operator may want to graph, from [Snowflake.Stats], counted since the cursor was made.
type Stats struct {
	// Waits is how often a call found no free slot and waited or gave up.
	Waits uint64
	// Rollbacks is how many steps back of the clock were seen, tolerated or refused.
	Rollbacks uint64
	// LeadMs is by how many ms the last tick taken lies ahead of the clock; 0 where it does not.
	LeadMs uint64
	// LastIssued is the start of the last ID's tick, in UTC; the zero time before the first ID.
	LastIssued time.Time
}

// Stats reads the counters, and the clock once. It gives [ErrClockFailed] or [ErrClosed].
func (s *Snowflake) Stats() (Stats, error) {
	c := s.open.Load()
	if c == nil {
		return Stats{}, errClosed()
	}
	read := C.polyflake_stats{size: C.sizeof_polyflake_stats}
	failure := C.polyflake_go_stats(c.address, &read)
	runtime.KeepAlive(c)
	if failure != nil {
		return Stats{}, failed(failure)
	}
	stats := Stats{Waits: uint64(read.waits), Rollbacks: uint64(read.rollbacks), LeadMs: uint64(read.lead_ms)}
	if read.last_issued_ms >= 0 {
		stats.LastIssued = time.UnixMilli(int64(read.last_issued_ms)).UTC()
	}
	return stats, nil
}

// Close ends the Snowflake: from here on every call for an ID or its stats gives [ErrClosed], calls that wait end with
// it, and a call that has its IDs already returns them. Other Snowflakes of the node go on. What it owns is freed when
// the last call has returned, at the next collection of garbage; so is a Snowflake that is never closed and no longer
// referred to. Close never fails and does not wait, and a second one does nothing.
func (s *Snowflake) Close() error {
	if c := s.open.Swap(nil); c != nil {
		C.polyflake_go_close(c.address)
		runtime.KeepAlive(c)
	}
	return nil
}
