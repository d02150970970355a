// Package polyflake issues Snowflakes: 64-bit, time-ordered, unique IDs, in any common layout.
//
//	ids, err := polyflake.New(polyflake.Node(7))
//	id, err := ids.NextID()
//
// It wraps the C library libpolyflake, which pkg-config must find at build time and the loader at run time. Options,
// errors and guarantees are the same as in Polyflake's other languages.
//
// Times are Unix times, without leap seconds.
package polyflake

// #cgo noescape polyflake_snowflake_node
// #cgo nocallback polyflake_snowflake_node
// #cgo noescape polyflake_check_batch
// #cgo nocallback polyflake_check_batch
// #cgo nocallback polyflake_go_next_id_or_zero
// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"runtime/cgo"
	"sync/atomic"
	"time"
	"unsafe"
)

func init() {
	// Under a different ABI, calls may mean something else. It is better to stop here than to issue wrong IDs.
	if abi := C.polyflake_abi_version(); abi != C.POLYFLAKE_ABI_VERSION {
		panic(fmt.Sprintf("polyflake: this program was built for ABI version %d, but the loaded library has version %d: "+
			"rebuild the program", C.POLYFLAKE_ABI_VERSION, abi))
	}
}

// MaxBatch is the most IDs that [Snowflake.NextIDs] returns at once. [Snowflake.Fill] has no such limit.
const MaxBatch = C.POLYFLAKE_MAX_BATCH

// Version returns the version of the library, such as "0.1.0".
func Version() string {
	return C.GoString(C.polyflake_version())
}

// Snowflake issues IDs. Get a Snowflake from [New]. Any number of goroutines may use it at the same time: its IDs never
// repeat, and each is greater than every ID that was returned before its call began. A goroutine that waits for an ID
// waits in Go, where it holds neither a processor nor a thread. Waiting goroutines are served in the order in which
// they arrived.
//
// The zero Snowflake is closed. A Snowflake must not be copied.
type Snowflake struct {
	// nil once the Snowflake is closed. A call holds the cSnowflake that it found here until it returns.
	open   atomic.Pointer[cSnowflake]
	layout Layout
	// The node; with a lease, the node when it was last read.
	node     atomic.Uint64
	isLeased bool
}

// cSnowflake owns the C object. Only the garbage collector frees it, once no Snowflake and no call refers to the
// cSnowflake. So a call in progress never uses freed memory, at no cost per ID.
type cSnowflake struct {
	address     C.uintptr_t // of the polyflake_snowflake; see shim.h
	hasOwnClock bool
	tick        tick
	// Keeps a Go pointer in the struct, because the allocator packs pointer-free structs together, and a cleanup would
	// then wait for all of them.
	layout Layout
	queue  queue
}

// New creates a Snowflake.
//
//	polyflake.New(polyflake.NodeFields(map[string]uint64{"datacenter": 1, "worker": 7}))
//	polyflake.New(polyflake.WithLayout("sonyflake2"), polyflake.Node(7), polyflake.MaxAhead(50*time.Millisecond))
//
// With a built-in clock, Snowflakes in one process share a cursor, and so never repeat each other's IDs, if they have
// the same epoch and tick, the same timestamp and sequence positions and widths, and the same node bits in the same
// place. The names of their layouts do not matter. The first ID of a new cursor may have to wait for the next tick.
// Layouts that split the bits differently are separate systems, and their IDs may collide.
//
// It returns [ErrInvalidLayout], [ErrUnknownLayout], [ErrInvalidNode] or [ErrInvalidOption] for an invalid option. It
// also returns [ErrInvalidOption] if the node's cursor already exists with a different [MaxAhead] or [MaxBackward], or
// with a different state file or none, or if [Lease] is combined with [State] or [Clock]. It returns [ErrForked] for a
// node that the parent process used before a fork without a state file. With [State], it may also return
// [ErrStateFile], or [ErrClockFailed] for a custom clock, and takes about a second if the file is new or the machine
// has just booted. With [Lease], it waits for a node, and may return [ErrLeaseUnavailable].
//
// If the process has another copy of the library, for example in another language's package, New logs a warning, once.
// Each copy has its own cursors, so Snowflakes with the same node in different copies repeat each other's IDs. Copies
// are detected on Linux.
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
		owned.free() // first, since failed may panic if the clock did
		return nil, failed(result.failure)
	}
	owned.snowflake = result.snowflake
	made, err := wrap(owned.snowflake, s.clock != nil, s.isLeased)
	if err != nil {
		owned.free()
		return nil, err
	}
	runtime.AddCleanup(made.open.Load(), resources.free, owned)
	warnOfCopies()
	return made, nil
}

// NewContext is like [New], but stops waiting and returns the context's error when the context is done. Use it with a
// [Lease], where waiting for a node can take a while. The attempt then continues in the background, on one thread, and
// closes the Snowflake that it creates, so that the node becomes free again. If the context is done before the call,
// nothing is created.
func NewContext(ctx context.Context, options ...Option) (*Snowflake, error) {
	return openContext(ctx, func() (*Snowflake, error) { return New(options...) })
}

func wrap(c *C.polyflake_snowflake, hasOwnClock, isLeased bool) (*Snowflake, error) {
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
	var maxWaitMs C.uint32_t
	if err := check(C.polyflake_snowflake_max_wait_ms(c, &maxWaitMs, &detail), &detail); err != nil {
		return nil, err
	}
	made := &Snowflake{layout: layout, isLeased: isLeased}
	made.node.Store(uint64(node))
	address := C.uintptr_t(uintptr(unsafe.Pointer(c)))
	opened := &cSnowflake{address: address, hasOwnClock: hasOwnClock, tick: newTick(c), layout: layout}
	opened.queue.maxWait = duration(uint64(maxWaitMs))
	made.open.Store(opened)
	return made, nil
}

// resources holds everything that a cSnowflake owns outside Go's memory.
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

// NextID returns the next ID. If the tick's sequence is used up, it waits. It gives up only if the Snowflake has served
// no waiting goroutine for [MaxWait] of real time: as long as the queue moves, no call fails.
//
// It returns [ErrSequenceExhausted] or [ErrClockMovedBackwards] if that was not long enough (after a step back of more
// than [MaxBackward], it does not wait), [ErrTimeOutOfRange], [ErrClockFailed], [ErrForked], [ErrStateFile],
// [ErrLeaseLost] or [ErrClosed].
func (s *Snowflake) NextID() (ID, error) {
	c := s.open.Load()
	if c == nil {
		return 0, errClosed()
	}
	if id := c.tick.next(); id != 0 {
		runtime.KeepAlive(c)
		return id, nil
	}
	return c.nextID(context.Background())
}

// NextIDContext is like [Snowflake.NextID], but stops waiting and returns the context's error when the context is done,
// up to 2 ms late. If the context is done before the call, it takes no ID, even if one is available. An ID that was
// taken for the call before its context was done is lost, never repeated.
func (s *Snowflake) NextIDContext(ctx context.Context) (ID, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	c := s.open.Load()
	if c == nil {
		return 0, errClosed()
	}
	if id := c.tick.next(); id != 0 {
		runtime.KeepAlive(c)
		return id, nil
	}
	return c.nextID(ctx)
}

func (c *cSnowflake) nextID(ctx context.Context) (ID, error) {
	if !c.hasOwnClock {
		if id := C.polyflake_go_next_id_or_zero(c.address); id != 0 {
			runtime.KeepAlive(c)
			return ID(id), nil
		}
	} else {
		// Not next_id_or_zero, which would lose the clock's error.
		result := C.polyflake_go_next_id(c.address)
		runtime.KeepAlive(c)
		if result.failure != nil {
			return 0, failed(result.failure)
		}
		if result.id != 0 {
			return ID(result.id), nil
		}
	}
	room := make([]ID, 1)
	if err := c.wait(ctx, room, 0); err != nil {
		return 0, err
	}
	return room[0], nil
}

// TryNextID returns the next ID without waiting. It returns the same errors as [Snowflake.NextID].
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

// NextIDs returns the next n IDs in order, much faster than n calls to [Snowflake.NextID]. Between two runs of IDs, it
// waits as NextID does. After an error, the IDs that the call had already taken are lost, never repeated.
//
// It returns the same errors as NextID, or [ErrInvalidOption] unless n is between 1 and [MaxBatch].
func (s *Snowflake) NextIDs(n int) ([]ID, error) {
	return s.NextIDsContext(context.Background(), n)
}

// NextIDsContext is like [Snowflake.NextIDs], but stops waiting when the context is done, as [Snowflake.NextIDContext]
// does.
func (s *Snowflake) NextIDsContext(ctx context.Context, n int) ([]ID, error) {
	detail := newDetail()
	if err := check(C.polyflake_check_batch(C.int64_t(n), &detail), &detail); err != nil {
		return nil, err
	}
	ids := make([]ID, n)
	if err := s.FillContext(ctx, ids); err != nil {
		return nil, err
	}
	return ids, nil
}

// Fill is like [Snowflake.NextIDs], but fills an existing slice of any length. After an error, the contents of the
// slice are meaningless.
func (s *Snowflake) Fill(ids []ID) error {
	return s.FillContext(context.Background(), ids)
}

// FillContext is like [Snowflake.Fill], but stops waiting when the context is done, as [Snowflake.NextIDContext] does.
func (s *Snowflake) FillContext(ctx context.Context, ids []ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := s.open.Load()
	if c == nil {
		return errClosed()
	}
	result := C.polyflake_go_fill(c.address, C.size_t(len(ids)), (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(ids))))
	runtime.KeepAlive(c)
	if result.failure != nil {
		return failed(result.failure)
	}
	if filled := int(result.count); filled < len(ids) {
		return c.wait(ctx, ids, filled)
	}
	return nil
}

// All returns an endless iterator over IDs from [Snowflake.NextID]. It stops after an error; to continue, range over it
// again.
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

// Decode decodes an ID with the layout of the Snowflake; see [Layout.Decode]. It also works after [Snowflake.Close].
func (s *Snowflake) Decode(id ID) (Decoded, error) {
	return s.layout.Decode(id)
}

// Layout returns the layout of the IDs.
func (s *Snowflake) Layout() Layout {
	return s.layout
}

// Node returns the node, as the value of all node bits together, highest field first. Once a lease has been lost, the
// node may change: this is the node of either the last ID or the next one.
func (s *Snowflake) Node() uint64 {
	if c := s.open.Load(); c != nil && s.isLeased {
		detail := newDetail()
		var node C.uint64_t
		if C.polyflake_go_node(c.address, &node, &detail) == C.POLYFLAKE_OK {
			s.node.Store(uint64(node))
		}
		runtime.KeepAlive(c)
	}
	return s.node.Load()
}

// Stats holds statistics for monitoring. They cover the time since the cursor was created. Get them from
// [Snowflake.Stats].
type Stats struct {
	// Waits is how many times a call found no free slot and waited or failed.
	Waits uint64
	// Rollbacks is how many times the clock was seen to step backward, whether or not the step was tolerated.
	Rollbacks uint64
	// LeadMs is how many ms the last tick used is ahead of the clock; 0 if it is not ahead.
	LeadMs uint64
	// LastIssued is the start of the last ID's tick, in UTC; the zero time before the first ID.
	LastIssued time.Time
	// LeaseLosses is how many times the lease was lost because it expired or another process had its node; 0 without a
	// lease.
	LeaseLosses uint64
}

// Stats returns the statistics. It reads the clock once. It returns [ErrClockFailed], [ErrForked] or [ErrClosed].
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
	stats := Stats{
		Waits: uint64(read.waits), Rollbacks: uint64(read.rollbacks), LeadMs: uint64(read.lead_ms),
		LeaseLosses: uint64(read.lease_losses),
	}
	if read.last_issued_ms >= 0 {
		stats.LastIssued = time.UnixMilli(int64(read.last_issued_ms)).UTC()
	}
	return stats, nil
}

// Close closes the Snowflake. From then on, calls for an ID or for stats return [ErrClosed], even those that are
// waiting; a call that already has its IDs returns them. Other Snowflakes with the same node are not affected. The
// garbage collector frees the memory once the last call has returned, even if the Snowflake is never closed. Close
// never fails. It waits only when it closes the last Snowflake on a lease: it then waits for the store to take the node
// back, for at most a sixth of the TTL or 5 s, whichever is shorter. Closing again does nothing.
func (s *Snowflake) Close() error {
	s.Node() // keeps the last node for later
	if c := s.open.Swap(nil); c != nil {
		c.queue.close() // first, because the store may be slow
		C.polyflake_go_close(c.address)
		runtime.KeepAlive(c)
	}
	return nil
}
