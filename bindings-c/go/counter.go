package polyflake

// #cgo noescape polyflake_counter_open
// #cgo nocallback polyflake_counter_open
// #cgo nocallback polyflake_go_counter_in_hand_or_zero
// #cgo noescape polyflake_go_counter_fill_in_hand
// #cgo nocallback polyflake_go_counter_fill_in_hand
// #cgo nocallback polyflake_go_counter_try_next_id
// #cgo noescape polyflake_counter_fill
// #cgo nocallback polyflake_counter_fill
// #cgo noescape polyflake_counter_next_block
// #cgo nocallback polyflake_counter_next_block
// #cgo noescape polyflake_counter_peek
// #cgo nocallback polyflake_counter_peek
// #cgo noescape polyflake_counter_raise
// #cgo nocallback polyflake_counter_raise
// #cgo noescape polyflake_counter_remove
// #cgo nocallback polyflake_counter_remove
// #cgo noescape polyflake_counter_stats
// #cgo nocallback polyflake_counter_stats
// #include "shim.h"
import "C"

import (
	"context"
	"iter"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"
)

// Counter issues numbers that count up, each only once: 1, 2, 3 and so on, for order numbers or as a table's keys. A
// store hands them out in segments, so that most numbers need no round trip. Get a Counter from [OpenCounter]. Any
// number of goroutines may use it at the same time.
//
// No number is issued twice, by any process, as long as the store does not lose a write it has acknowledged. With one
// store, each number is greater than every number this process received before the call began. If a process exits
// without calling [Counter.Close], the numbers it had fetched but not returned are skipped: at most two segments, plus
// the numbers taken by calls in progress.
//
// Goroutines that wait for the store wait in Go, and hold only a few threads between them.
//
// The zero Counter is closed. A Counter must not be copied.
type Counter struct {
	// nil once the Counter is closed. A call holds the cCounter that it found here until it returns.
	open atomic.Pointer[cCounter]
	name string
}

// cCounter owns the C object, as cSnowflake does.
type cCounter struct {
	pointer *C.polyflake_counter
	address C.uintptr_t // the same address: see shim.h
	// Keeps a Go pointer in the struct: see cSnowflake.
	name  string
	queue counterQueue
	store storeCalls
}

// CounterOption is an option of [OpenCounter]. A later value replaces an earlier one, except for [CounterStore].
type CounterOption func(*storeSettings) error

// OpenCounter opens the counter with the given name, which must have 1 to 100 characters. It creates the counter if the
// store does not have it, and waits for at most [CounterMaxWait] until the counter can issue a number.
//
//	orders, err := polyflake.OpenCounter("orders", polyflake.CounterStore("postgres://host/shop"))
//	number, err := orders.NextID()
//
// Counters in one process with the same stores and name share the numbers in hand. Events are logged: see [LogLeases].
//
// It returns [ErrInvalidOption] if an option is invalid, if no store is given, if the stores differ in order or number
// from those the counter started with, or if this process already uses the counter with a different start or step. It
// returns [ErrCounterUnavailable] if the store cannot be reached or refuses to hand out numbers.
func OpenCounter(name string, options ...CounterOption) (*Counter, error) {
	s := storeSettings{C.polyflake_options_new(), defaultMaxWait}
	defer C.polyflake_options_free(s.options)
	listen()
	for _, option := range append([]CounterOption{CounterSet("name", name)}, options...) {
		if err := option(&s); err != nil {
			return nil, err
		}
	}
	detail := newDetail()
	var opened *C.polyflake_counter
	if err := check(C.polyflake_counter_open(s.options, &opened, &detail), &detail); err != nil {
		return nil, err
	}
	made := &Counter{name: name}
	owner := &cCounter{
		pointer: opened, address: C.uintptr_t(uintptr(unsafe.Pointer(opened))), name: name, store: newStoreCalls(s.maxWait),
	}
	made.open.Store(owner)
	runtime.AddCleanup(owner, func(c *C.polyflake_counter) { C.polyflake_counter_free(c) }, opened)
	return made, nil
}

// OpenCounterContext is like [OpenCounter], but stops waiting and returns the context's error when the context is done.
// The attempt then continues in the background, on one thread, and closes the Counter if it succeeds. If the context is
// done before the call, nothing is opened.
func OpenCounterContext(ctx context.Context, name string, options ...CounterOption) (*Counter, error) {
	return openContext(ctx, func() (*Counter, error) { return OpenCounter(name, options...) })
}

// CounterSet sets an option by name to a string, such as a value from a configuration file. Names and values are the
// same in every language. The names are store, start, step and max_wait_ms. [OpenCounter] returns [ErrInvalidOption]
// for any other name.
func CounterSet(name, value string) CounterOption {
	return func(s *storeSettings) error {
		return s.set(name, value)
	}
}

// CounterStore adds the addresses of stores, such as "redis://host/0". At least one store is required. Several stores
// divide up the numbers: calls go to each store in turn, and to the others while one is down, so numbers are unique,
// but not ordered. Every process must name the stores in the same order.
func CounterStore(addresses ...string) CounterOption {
	return func(s *storeSettings) error {
		for _, address := range addresses {
			if err := CounterSet("store", address)(s); err != nil {
				return err
			}
		}
		return nil
	}
}

// CounterStart sets the first number, if the store does not have the counter yet: 1 to 2^63-1. The default is 1.
func CounterStart(number ID) CounterOption {
	return CounterSet("start", number.String())
}

// CounterStep sets how many numbers a segment has: 1 to 1,000,000,000. With 1, the store is asked for each number, and
// numbers increase across all processes. By default, the first segment has 100 numbers. Each later one is sized to last
// ten minutes at the current rate, with at most twice as many numbers as the one before and at most 1,000,000.
// CounterSet("step", "auto") means the same.
func CounterStep(numbers uint64) CounterOption {
	return CounterSet("step", strconv.FormatUint(numbers, 10))
}

// CounterMaxWait (max_wait_ms) sets the longest time that a call waits for the store. The value must be a whole number
// of milliseconds; the default is 10 s.
func CounterMaxWait(d time.Duration) CounterOption {
	return CounterSet("max_wait_ms", milliseconds(d))
}

// NextID returns the next number. If no number is in hand, it waits for the store, for at most [CounterMaxWait].
//
// It returns [ErrCounterUnavailable] if the store hands out no number within that time, and at once if waiting would
// not help: the store refuses, the counter was removed, or it has reached 2^63-1. It returns [ErrClosed] after
// [Counter.Close].
func (c *Counter) NextID() (ID, error) {
	return c.next(context.Background())
}

// NextIDContext is like [Counter.NextID], but stops waiting and returns the context's error when the context is done.
// If the context is done before the call, it takes no number, even if one is in hand. A number that was taken for the
// call before its context was done is lost, never repeated.
func (c *Counter) NextIDContext(ctx context.Context) (ID, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return c.next(ctx)
}

func (c *Counter) next(ctx context.Context) (ID, error) {
	open := c.open.Load()
	if open == nil {
		return 0, errClosed()
	}
	number := C.polyflake_go_counter_in_hand_or_zero(open.address)
	runtime.KeepAlive(open)
	if number != 0 {
		return ID(number), nil
	}
	room := make([]ID, 1)
	if err := open.wait(ctx, room, 0); err != nil {
		return 0, err
	}
	return room[0], nil
}

// TryNextID returns the next number without waiting for the store. It returns [ErrCounterUnavailable] if no number is
// in hand; the library then asks the store for more in the background. With a step of 1, this always happens. It
// returns [ErrClosed] after [Counter.Close].
func (c *Counter) TryNextID() (ID, error) {
	open := c.open.Load()
	if open == nil {
		return 0, errClosed()
	}
	result := C.polyflake_go_counter_try_next_id(open.address)
	runtime.KeepAlive(open)
	if result.failure != nil {
		return 0, failed(result.failure)
	}
	return ID(result.id), nil
}

// NextIDs returns n numbers, much faster than n calls to [Counter.NextID]. With one store, they increase. There may be
// gaps between them; for numbers without gaps, see [Counter.NextBlock]. After an error, the numbers that the call had
// already taken are lost, never repeated.
//
// It returns the same errors as NextID, or [ErrInvalidOption] unless n is between 1 and [MaxBatch].
func (c *Counter) NextIDs(n int) ([]ID, error) {
	return c.NextIDsContext(context.Background(), n)
}

// NextIDsContext is like [Counter.NextIDs], but stops waiting when the context is done, as [Counter.NextIDContext]
// does.
func (c *Counter) NextIDsContext(ctx context.Context, n int) ([]ID, error) {
	detail := newDetail()
	if err := check(C.polyflake_check_batch(C.int64_t(n), &detail), &detail); err != nil {
		return nil, err
	}
	numbers := make([]ID, n)
	if err := c.FillContext(ctx, numbers); err != nil {
		return nil, err
	}
	return numbers, nil
}

// Fill is like [Counter.NextIDs], but fills an existing slice of any length. After an error, the contents of the slice
// are meaningless.
func (c *Counter) Fill(numbers []ID) error {
	return c.FillContext(context.Background(), numbers)
}

// FillContext is like [Counter.Fill], but stops waiting when the context is done, as [Counter.NextIDContext] does.
func (c *Counter) FillContext(ctx context.Context, numbers []ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	open := c.open.Load()
	if open == nil {
		return errClosed()
	}
	return open.fill(ctx, numbers)
}

// NextBlock returns the first of n consecutive numbers; the last is first+n-1. If fewer than n numbers are left in
// hand, they are skipped, and the store is asked for more.
//
// It returns the same errors as [Counter.NextID], or [ErrInvalidOption] unless n is between 1 and [MaxBatch], or if the
// counter has several stores, whose numbers are not consecutive.
func (c *Counter) NextBlock(n int) (first ID, err error) {
	return c.NextBlockContext(context.Background(), n)
}

// NextBlockContext is like [Counter.NextBlock], but stops waiting when the context is done, as [Counter.NextIDContext]
// does. Numbers taken for a call whose context is done are lost, never repeated, even if they are taken afterwards.
func (c *Counter) NextBlockContext(ctx context.Context, n int) (first ID, err error) {
	if open := c.open.Load(); open != nil && ctx.Done() == nil && open.store.enter() {
		defer open.store.leave()
		return open.nextBlock(n)
	}
	return c.nextBlockLater(ctx, n)
}

// nextBlockLater waits in Go. It is separate because its closure would cost NextBlockContext an allocation.
func (c *Counter) nextBlockLater(ctx context.Context, n int) (ID, error) {
	return askStore(ctx, c, func(open *cCounter) (ID, error) { return open.nextBlock(n) })
}

func (c *cCounter) nextBlock(n int) (ID, error) {
	var number C.uint64_t
	detail := newDetail()
	err := check(C.polyflake_counter_next_block(c.pointer, C.int64_t(n), &number, &detail), &detail)
	runtime.KeepAlive(c)
	return ID(number), err
}

// All returns an endless iterator over numbers from [Counter.NextID]. It stops after an error; to continue, range over
// it again.
func (c *Counter) All() iter.Seq2[ID, error] {
	return func(yield func(ID, error) bool) {
		for {
			number, err := c.NextID()
			if !yield(number, err) || err != nil {
				return
			}
		}
	}
}

// Name returns the name of the counter.
func (c *Counter) Name() string {
	return c.name
}

// Peek returns the highest number in any segment that the store has handed out, to any process, or 0 before the first
// segment. It queries the store.
//
// It returns [ErrCounterUnavailable] if the store cannot be reached within [CounterMaxWait] or has no such counter, or
// [ErrClosed].
func (c *Counter) Peek() (ID, error) {
	return askStore(context.Background(), c, func(open *cCounter) (ID, error) {
		var number C.uint64_t
		detail := newDetail()
		err := check(C.polyflake_counter_peek(open.pointer, &number, &detail), &detail)
		return ID(number), err
	})
}

// Raise moves the counter above number: from then on, the store hands out only greater numbers. This process gives up
// its numbers in hand; other processes first use up theirs. Raise changes nothing if the counter is already higher.
//
// It returns the same errors as [Counter.Peek], or [ErrInvalidOption] unless the number is between 1 and 2^63-1.
func (c *Counter) Raise(number ID) error {
	_, err := askStore(context.Background(), c, func(open *cCounter) (struct{}, error) {
		detail := newDetail()
		return struct{}{}, check(C.polyflake_counter_raise(open.pointer, C.uint64_t(number), &detail), &detail)
	})
	return err
}

// Remove deletes the counter from the store, and reports whether it existed. From then on, this process's Counters with
// that name issue no numbers. A process that opens the counter later starts again at the first number, so numbers
// repeat.
//
// It returns the same errors as [Counter.Peek].
func (c *Counter) Remove() (existed bool, err error) {
	return askStore(context.Background(), c, func(open *cCounter) (bool, error) {
		var answer C.int
		detail := newDetail()
		err := check(C.polyflake_counter_remove(open.pointer, &answer, &detail), &detail)
		return answer != 0, err
	})
}

// CounterStats holds statistics for monitoring. They cover the whole process since it first opened a Counter with this
// name. Get them from [Counter.Stats].
type CounterStats struct {
	// InHand is how many numbers are in hand.
	InHand uint64
	// Step is how many numbers the next segment will have.
	Step uint64
	// Segments is how many times the store has handed out numbers.
	Segments uint64
	// Skipped is how many numbers were skipped to keep blocks consecutive and numbers increasing.
	Skipped uint64
	// Waits is how many times a call found no number in hand and waited or failed. Calls that share a request to the
	// store are counted once.
	Waits uint64
}

// Stats returns the statistics for monitoring. It returns [ErrClosed] after [Counter.Close].
func (c *Counter) Stats() (CounterStats, error) {
	open := c.open.Load()
	if open == nil {
		return CounterStats{}, errClosed()
	}
	read, err := open.counts()
	return CounterStats{
		InHand: uint64(read.in_hand), Step: uint64(read.step), Segments: uint64(read.segments),
		Skipped: uint64(read.skipped), Waits: uint64(read.waits),
	}, err
}

// Close closes the Counter. From then on, calls return [ErrClosed], even those that are waiting. Closing the last
// Counter with a given name in this process returns the rest of its last segment to the store, waiting for at most 5 s.
// The garbage collector frees the memory, even if the Counter is never closed. Close never fails. Closing again does
// nothing.
func (c *Counter) Close() error {
	if open := c.open.Swap(nil); open != nil {
		open.queue.close() // first, because the store may be slow
		close(open.store.closed)
		C.polyflake_counter_close(open.pointer)
		runtime.KeepAlive(open)
	}
	return nil
}

func (c *cCounter) counts() (C.polyflake_counter_counts, error) {
	read := C.polyflake_counter_counts{size: C.sizeof_polyflake_counter_counts}
	detail := newDetail()
	err := check(C.polyflake_counter_stats(c.pointer, &read, &detail), &detail)
	runtime.KeepAlive(c)
	return read, err
}

// askStore makes a C call that queries the store without going through the queue.
func askStore[T any](ctx context.Context, c *Counter, call func(*cCounter) (T, error)) (answer T, err error) {
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	open := c.open.Load()
	if open == nil {
		return answer, errClosed()
	}
	return bounded(ctx, &open.store, func() (T, error) {
		defer runtime.KeepAlive(open)
		return call(open)
	}, func() (none T, err error) {
		return none, open.whyLate()
	})
}

// whyLate returns the error for a call that has waited in vain for its turn to query the store.
func (c *cCounter) whyLate() error {
	// With numbers in hand, the library would return a number instead of an error.
	if read, err := c.counts(); err == nil && read.in_hand == 0 {
		result := C.polyflake_go_counter_try_next_id(c.address)
		runtime.KeepAlive(c)
		if result.failure != nil {
			return failed(result.failure)
		}
	}
	return newError(ErrCounterUnavailable, ErrCounterUnavailable.words())
}
