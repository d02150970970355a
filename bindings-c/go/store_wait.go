package polyflake

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	// defaultMaxWait is the default max_wait_ms of counters and sequences.
	defaultMaxWait = 10 * time.Second
	// mostInStore is how many threads may wait for the store in calls of one kind. newStoreCalls raises it for many
	// processors.
	mostInStore = 4
	// mostFetched is the most numbers that one C call fetches for the waiting calls.
	mostFetched = 1 << 20
	// manyNumbers is the smallest slice length for which it pays to check the numbers in hand first and to take them
	// all in one fill.
	manyNumbers = 16
)

// counterQueue holds a Counter's waiting calls. One goroutine at a time fetches numbers, for all calls that are in the
// queue when the fetch begins. Calls that arrive later may have begun after greater numbers were returned, so they wait
// for the next fetch.
type counterQueue struct {
	mutex sync.Mutex
	line
	isFetching, isClosed bool
	// How many calls are filling large slices themselves, because they found enough numbers in hand. Others may take
	// these numbers first, so the calls may have to wait.
	filling atomic.Int32
}

// fill fills a slice of any length.
func (c *cCounter) fill(ctx context.Context, numbers []ID) error {
	if len(numbers) >= manyNumbers && ctx.Done() == nil {
		if read, err := c.counts(); err == nil && uint64(read.in_hand) >= uint64(len(numbers)) {
			if c.queue.filling.Add(1) <= mostInStore {
				defer c.queue.filling.Add(-1)
				return c.fetchInto(numbers)
			}
			c.queue.filling.Add(-1)
		}
	}
	if filled := c.fillInHand(numbers); filled < len(numbers) {
		return c.wait(ctx, numbers, filled)
	}
	return nil
}

// fillInHand fills numbers from those in hand, and returns how many it took.
func (c *cCounter) fillInHand(numbers []ID) int {
	start := (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(numbers)))
	filled := C.polyflake_go_counter_fill_in_hand(c.address, C.size_t(len(numbers)), start)
	runtime.KeepAlive(c)
	return int(filled)
}

// fetchInto fills numbers, and blocks a thread while it waits for the store.
func (c *cCounter) fetchInto(numbers []ID) error {
	detail := newDetail()
	start := (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(numbers)))
	err := check(C.polyflake_counter_fill(c.pointer, C.size_t(len(numbers)), start, &detail), &detail)
	runtime.KeepAlive(c)
	return err
}

// wait fills the rest of numbers, whose first filled elements are already there.
func (c *cCounter) wait(ctx context.Context, numbers []ID, filled int) error {
	w := &waiter{ids: numbers, filled: filled, since: time.Now(), news: make(chan struct{}, 1)}
	done := ctx.Done()
	q := &c.queue
	q.mutex.Lock()
	q.push(w)
	if !q.isFetching && !q.isClosed {
		q.isFetching = true
		go c.fetch()
	}
	q.mutex.Unlock()
	for isCancelled := false; ; {
		q.mutex.Lock()
		// Longer than the library waits, because the library's error may say more about the cause.
		left := c.store.maxWait + grace - time.Since(w.since)
		isFilled := w.filled == len(w.ids)
		isOver := isFilled || w.err != nil || q.isClosed || isCancelled || left <= 0
		isClosed := q.isClosed
		if isOver {
			q.remove(w)
		}
		q.mutex.Unlock()
		switch {
		case !isOver:
			isCancelled = w.sleep(done, left)
		case isFilled:
			return nil
		case isClosed:
			return errClosed()
		case w.err != nil:
			return w.err
		case isCancelled:
			return ctx.Err()
		default:
			return c.tooLate(w)
		}
	}
}

// tooLate returns the error for a call that has waited in vain, unless the numbers it wants are now in hand.
func (c *cCounter) tooLate(w *waiter) error {
	for {
		w.filled += c.fillInHand(w.ids[w.filled:])
		if w.filled == len(w.ids) {
			return nil
		}
		result := C.polyflake_go_counter_try_next_id(c.address)
		runtime.KeepAlive(c)
		if result.failure != nil {
			return failed(result.failure)
		}
		w.ids[w.filled] = ID(result.id)
		w.filled++
		if w.filled == len(w.ids) {
			return nil
		}
	}
}

// fetch gets numbers for the waiting calls until none is waiting.
func (c *cCounter) fetch() {
	q := &c.queue
	var room []ID
	for {
		most := c.mostAtOnce()
		wanted := 0
		q.mutex.Lock()
		for w := q.first; w != nil && wanted < most; w = w.after {
			wanted = min(wanted+len(w.ids)-w.filled, most)
			w.isAsked = true
		}
		if wanted == 0 || q.isClosed {
			q.isFetching = false
			q.mutex.Unlock()
			return
		}
		q.mutex.Unlock()
		// Do not fetch into a call's own slice, because the call may stop waiting before the library does.
		if len(room) < wanted {
			room = make([]ID, wanted)
		}
		err := c.fetchInto(room[:wanted])
		q.mutex.Lock()
		var served []*waiter
		if err == nil {
			served = q.deal(room[:wanted], 0)
		} else {
			for q.first != nil && q.first.isAsked {
				q.first.err = err
				served = append(served, q.first)
				q.remove(q.first)
			}
		}
		now := time.Now()
		for w := q.first; w != nil; w = w.after {
			w.isAsked = false
			if w.filled > 0 && err == nil {
				w.since = now // a batch may wait this long each time, as in the library
			}
		}
		q.mutex.Unlock()
		for _, w := range served {
			w.tell()
		}
	}
}

// mostAtOnce is how many numbers a fetch asks for: a segment, so that waiting calls get theirs after one answer from
// the store. With a step of 1, the store hands out any number of them at once.
func (c *cCounter) mostAtOnce() int {
	read, err := c.counts()
	if step := uint64(read.step); err == nil && step > 1 {
		return int(min(step, mostFetched))
	}
	return mostFetched
}

// close makes all waiting calls return [ErrClosed].
func (q *counterQueue) close() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.isClosed = true
	q.tellAll()
}

// storeCalls limits how many calls may block in the library at once, waiting for the store. It is used where one call
// cannot serve all of them.
type storeCalls struct {
	maxWait time.Duration
	slots   chan struct{}
	closed  chan struct{}
	// How many calls are waiting for a slot.
	behind *atomic.Int32
}

func newStoreCalls(maxWait time.Duration) storeCalls {
	// Most of these calls find their numbers in memory, so they may use every processor.
	most := max(mostInStore, min(runtime.GOMAXPROCS(0), 32))
	return storeCalls{maxWait, make(chan struct{}, most), make(chan struct{}), new(atomic.Int32)}
}

// enter takes a slot, if one is free. leave gives it back.
func (s *storeCalls) enter() bool {
	select {
	case s.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *storeCalls) leave() {
	<-s.slots
}

// bounded makes a call that waits for the store, once a slot is free. After maxWait, it returns the result of tooLate.
func bounded[T any](ctx context.Context, s *storeCalls, call, tooLate func() (T, error)) (none T, err error) {
	if s.enter() {
		if ctx.Done() == nil {
			defer s.leave()
			return call()
		}
		return afterwards(ctx, s, time.NewTimer(s.maxWait+grace), call, tooLate)
	}
	begun, timer := time.Now(), time.NewTimer(s.maxWait+grace)
	s.behind.Add(1)
	select {
	case s.slots <- struct{}{}:
		s.behind.Add(-1)
		if time.Since(begun) >= s.maxWait {
			// Nobody would be waiting for the answer any more.
			s.leave()
			timer.Stop()
			return tooLate()
		}
		return afterwards(ctx, s, timer, call, tooLate)
	case <-timer.C:
		s.behind.Add(-1)
		return tooLate()
	case <-s.closed:
		err = errClosed()
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.behind.Add(-1)
	timer.Stop()
	return none, err
}

// afterwards makes a call that has a slot. It uses a goroutine, because the library may wait longer than the time this
// call has left.
func afterwards[T any](
	ctx context.Context, s *storeCalls, timer *time.Timer, call, tooLate func() (T, error),
) (none T, err error) {
	defer timer.Stop()
	answers := make(chan answer[T], 1)
	go func() {
		defer s.leave()
		value, err := call()
		answers <- answer[T]{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-timer.C:
		return tooLate()
	case <-s.closed:
		return none, errClosed()
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

type answer[T any] struct {
	value T
	err   error
}

// storeSettings holds the options of a counter or sequences.
type storeSettings struct {
	options *C.polyflake_options
	maxWait time.Duration
}

func (s *storeSettings) set(name, value string) error {
	if name == "max_wait_ms" {
		s.maxWait = maxWaitOf(value)
	}
	return setText(s.options, name, value)
}

// maxWaitOf reads max_wait_ms. If it is not a number, opening the counter or sequences fails.
func maxWaitOf(value string) time.Duration {
	ms, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return defaultMaxWait
	}
	return duration(ms)
}

// openContext opens an object, in the background if the context can be canceled, and closes the object if the context
// is done first.
func openContext[T interface{ Close() error }](ctx context.Context, open func() (T, error)) (none T, err error) {
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if ctx.Done() == nil {
		return open()
	}
	type result struct {
		answer[T]
		panicked any
		isBack   bool
	}
	results := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			// A custom clock may panic or exit its goroutine; either way, the caller must be told.
			r.panicked = recover()
			results <- r
		}()
		r.value, r.err = open()
		r.isBack = true
	}()
	select {
	case r := <-results:
		if r.panicked != nil {
			panic(r.panicked)
		} else if !r.isBack {
			runtime.Goexit()
		}
		return r.value, r.err
	case <-ctx.Done():
		go func() {
			if r := <-results; r.isBack && r.err == nil {
				_ = r.value.Close()
			}
		}()
		return none, ctx.Err()
	}
}
