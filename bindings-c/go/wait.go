package polyflake

// #cgo nocallback polyflake_go_waiting_new
// #cgo nocallback polyflake_waiting_free
// #cgo nocallback polyflake_pause
// #include "shim.h"
import "C"

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	// mostAsked is the maximum number of IDs that one poll requests.
	mostAsked = 1 << 14
	// longestPause is the longest time that a step of the clock may go unnoticed.
	longestPause = 50 * time.Millisecond
	// exactPause is how long the end of a wait may block a thread, because Go's timers are up to a millisecond late.
	exactPause = 2 * time.Millisecond
	// mostExact is how many threads may be blocked this way at once. In all other queues, the first call waits in Go
	// the whole time.
	mostExact = 8
	// grace is how late the first call may be before the others poll for themselves.
	grace = 10 * time.Millisecond
)

// exact counts the threads currently blocked for an exactPause.
var exact atomic.Int32

// queue holds a Snowflake's waiting calls. The first call waits for the clock, and gets IDs for all of them from
// polyflake_waiting_poll. This gives the queue one place among all calls in the process that wait for the same IDs. The
// other calls wait for the first. A batch that received only some of its IDs goes to the back.
type queue struct {
	maxWait time.Duration

	mutex sync.Mutex
	line
	isClosed bool
	// When the queue last received IDs.
	served time.Time
	// nil until a poll needs it.
	place *C.polyflake_waiting
	// How many IDs the polls ask for, and for how many calls, counted from the first. If a poll gets none, the next
	// poll asks for the same: it may get IDs that were taken in between, which must not go to calls that have begun
	// since then, because greater IDs may have been returned before those calls began.
	asked, askedCalls int
	// Set if one of these calls has left the queue since.
	isShort bool
	// When the current poll began; zero if there is none.
	polling time.Time
	// A buffer for the IDs of several calls.
	room []ID
}

// line is a list of calls in the order in which they arrived.
type line struct{ first, last *waiter }

// waiter is a waiting call.
type waiter struct {
	ids    []ID
	filled int
	err    error // why it gets no numbers, in a counter's queue
	since  time.Time
	timer  *time.Timer
	// Signaled when the call has its IDs, becomes the first, or must stop waiting.
	news              chan struct{}
	before, after     *waiter
	isQueued, isAsked bool
}

// wait fills the rest of ids, whose first filled elements are already there.
func (c *cSnowflake) wait(ctx context.Context, ids []ID, filled int) error {
	defer runtime.KeepAlive(c)
	w := &waiter{ids: ids, filled: filled, since: time.Now(), news: make(chan struct{}, 1)}
	done := ctx.Done()
	q := &c.queue
	q.mutex.Lock()
	q.push(w)
	q.mutex.Unlock()
	// This runs even if a clock panics or calls runtime.Goexit, although it must not.
	defer q.leave(w)
	for isCancelled := false; ; {
		q.mutex.Lock()
		isFirst, isLate := q.first == w, q.isLate(w)
		left := max(q.maxWait-q.waited(w), 0) + grace
		switch {
		case w.filled == len(w.ids):
			q.mutex.Unlock()
			return nil
		case q.isClosed:
			q.mutex.Unlock()
			return errClosed()
		case isCancelled:
			q.remove(w) // now, so that it gets no IDs
			q.settle(w)
			q.mutex.Unlock()
			return ctx.Err()
		}
		q.mutex.Unlock()
		switch {
		case isFirst:
			pause, err := c.poll(w)
			if err != nil {
				return err
			}
			if pause > 0 {
				isCancelled = w.pause(done, pause)
			}
		case isLate:
			if err := c.pollAlone(w); err != nil {
				return err
			}
		default:
			isCancelled = w.sleep(done, left)
		}
	}
}

// poll gets IDs for the waiting calls, or returns how long to pause. w is the first call.
func (c *cSnowflake) poll(w *waiter) (time.Duration, error) {
	q := &c.queue
	q.mutex.Lock()
	if q.isShort {
		// Take another place, so as not to get the IDs of a call that has left the queue.
		q.forget()
	}
	if q.place == nil {
		q.place = C.polyflake_go_waiting_new(c.address)
	}
	if q.asked == 0 {
		q.ask()
	}
	room := w.ids[w.filled:]
	if q.askedCalls > 1 {
		if len(q.room) < q.asked {
			q.room = make([]ID, q.asked)
		}
		room = q.room
	}
	room = room[:q.asked]
	waited := q.waited(w)
	q.polling = time.Now()
	place := q.place
	q.mutex.Unlock()
	isBack := false
	defer func() {
		if !isBack { // runtime.Goexit in the clock
			q.mutex.Lock()
			q.forget()
			q.polling = time.Time{}
			q.mutex.Unlock()
		}
	}()
	result := pollPlace(place, waited, room)
	isBack = true
	q.mutex.Lock()
	q.polling = time.Time{}
	if result.failure == nil && result.count == 0 {
		pause := pauseOf(result)
		if q.asked > q.askedCalls && !q.last.isAsked {
			// The poll asks for a batch, but not for calls that have arrived since. Ask again, or the batch would get
			// the whole next tick.
			q.forget()
			pause = 0
		}
		q.mutex.Unlock()
		return pause, nil
	}
	var served []*waiter
	if result.failure == nil {
		served = q.deal(room[:result.count], c.layout.nodeMask())
		q.served = time.Now()
	}
	q.askNone()
	q.settle(w)
	q.mutex.Unlock()
	// All served calls have their IDs. Those that run first use up the rest of the tick, so they are woken in random
	// order.
	rand.Shuffle(len(served), func(i, j int) { served[i], served[j] = served[j], served[i] })
	for _, other := range served {
		other.tell()
	}
	if len(served) > 1 {
		runtime.Gosched()
	}
	return 0, failed(result.failure)
}

// pollAlone polls for a call that has waited for the maximum time, because the first call is stuck in a clock or on the
// disk. The call leaves the queue, unless it is a batch that received only some of its IDs.
func (c *cSnowflake) pollAlone(w *waiter) error {
	q := &c.queue
	q.mutex.Lock()
	q.remove(w)
	q.settle(w)
	waited := max(q.waited(w), q.maxWait)
	q.mutex.Unlock()
	if w.filled == len(w.ids) {
		return nil
	}
	place := C.polyflake_go_waiting_new(c.address)
	defer C.polyflake_waiting_free(place)
	room := w.ids[w.filled:]
	for {
		result := pollPlace(place, waited, room)
		if result.failure != nil {
			return failed(result.failure)
		}
		if result.count > 0 {
			w.put(room[:result.count], c.layout.nodeMask())
			break
		}
		time.Sleep(pauseOf(result))
	}
	if w.filled < len(w.ids) {
		w.since = time.Now()
		q.mutex.Lock()
		q.push(w)
		q.mutex.Unlock()
	}
	return nil
}

func pollPlace(place *C.polyflake_waiting, waited time.Duration, room []ID) C.polyflake_go_filled {
	return C.polyflake_go_waiting_poll(place, C.uint64_t(max(waited, 1)), C.size_t(len(room)),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(room))))
}

func pauseOf(result C.polyflake_go_filled) time.Duration {
	return time.Duration(max(min(uint64(result.pause_ns), uint64(longestPause)), 1))
}

// pause waits for at most the given time. It returns true if the context is done.
func (w *waiter) pause(done <-chan struct{}, pause time.Duration) bool {
	if pause > exactPause {
		return w.sleep(done, pause-exactPause)
	}
	if exact.Add(1) > mostExact {
		exact.Add(-1)
		return w.sleep(done, pause)
	}
	C.polyflake_pause(C.uint64_t(pause))
	exact.Add(-1)
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// sleep waits for at most the given time, or until the call is signaled. It returns true if the context is done.
func (w *waiter) sleep(done <-chan struct{}, longest time.Duration) bool {
	if w.timer == nil {
		w.timer = time.NewTimer(longest)
	} else {
		w.timer.Reset(longest)
	}
	defer w.timer.Stop()
	select {
	case <-w.news:
	case <-w.timer.C:
	case <-done:
		return true
	}
	return false
}

func (w *waiter) tell() {
	select {
	case w.news <- struct{}{}:
	default: // the last signal has not been read yet
	}
}

// put writes the next IDs of a call. If the lease has changed the node, a batch starts over, because all its IDs must
// have the same node.
func (w *waiter) put(ids []ID, nodeMask ID) {
	if w.filled > 0 && (w.ids[0]^ids[0])&nodeMask != 0 {
		w.filled = 0
	}
	w.filled += copy(w.ids[w.filled:], ids)
}

// The mutex is held in all functions below.

func (l *line) push(w *waiter) {
	w.before, w.after, w.isQueued = l.last, nil, true
	if l.last != nil {
		l.last.after = w
	} else {
		l.first = w
	}
	l.last = w
}

func (l *line) remove(w *waiter) {
	if !w.isQueued {
		return
	}
	if w.before != nil {
		w.before.after = w.after
	} else {
		l.first = w.after
	}
	if w.after != nil {
		w.after.before = w.before
	} else {
		l.last = w.before
	}
	w.before, w.after, w.isQueued, w.isAsked = nil, nil, false, false
}

func (l *line) tellAll() {
	for w := l.first; w != nil; w = w.after {
		w.tell()
	}
}

func (q *queue) remove(w *waiter) {
	if w.isAsked {
		q.isShort = true
	}
	q.line.remove(w)
}

// settle is called after calls have left the queue. It wakes the new first call, unless that is the caller.
func (q *queue) settle(caller *waiter) {
	switch {
	case q.first == nil:
		q.forget()
		q.room = nil
	case q.first != caller:
		q.first.tell()
	}
}

// ask sets how many IDs the next polls ask for, and for how many calls.
func (q *queue) ask() {
	for w := q.first; w != nil && q.askedCalls < mostAsked; w = w.after {
		q.asked = min(q.asked+len(w.ids)-w.filled, mostAsked)
		q.askedCalls++
		w.isAsked = true
	}
}

// askNone undoes ask, after a poll that got IDs or failed.
func (q *queue) askNone() {
	for w := q.first; w != nil && w.isAsked; w = w.after {
		w.isAsked = false
	}
	q.asked, q.askedCalls, q.isShort = 0, 0, false
}

// forget gives up the place in the process's queue.
func (q *queue) forget() {
	q.askNone()
	C.polyflake_waiting_free(q.place)
	q.place = nil
}

// deal gives the IDs to the calls for which they were requested: one to each, and the rest to the first calls that want
// more. It returns the calls that have all their IDs.
func (l *line) deal(ids []ID, nodeMask ID) (served []*waiter) {
	calls := 0
	for w := l.first; w != nil && w.isAsked && calls < len(ids); w = w.after {
		calls++
	}
	more := len(ids) - calls
	for range calls {
		w := l.first
		extra := min(more, len(w.ids)-w.filled-1)
		more -= extra
		w.put(ids[:1+extra], nodeMask)
		ids = ids[1+extra:]
		l.remove(w)
		if w.filled < len(w.ids) {
			l.push(w)
		} else {
			served = append(served, w)
		}
	}
	return served
}

// waited returns how long it has been since w arrived or, if that was later, since the queue last received IDs.
func (q *queue) waited(w *waiter) time.Duration {
	since := w.since
	if q.served.After(since) {
		since = q.served
	}
	return time.Since(since)
}

// isLate reports whether a call has waited longer than the maximum time while the first call is stuck in a poll.
func (q *queue) isLate(w *waiter) bool {
	return !q.polling.IsZero() && q.waited(w) >= q.maxWait+grace
}

// leave removes a call that is about to return.
func (q *queue) leave(w *waiter) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if w.isQueued {
		q.remove(w)
		q.settle(w)
	}
}

// close makes all waiting calls return [ErrClosed].
func (q *queue) close() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.isClosed = true
	q.tellAll()
}
