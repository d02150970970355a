package polyflake

import (
	"time"
	"unsafe"

	"github.com/polyflake/polyflake/bindings-c/go/internal/counter"
)

// LayoutsHeld returns the number of entries in the table of layouts.
func LayoutsHeld() (n int) {
	layouts.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}

// TakesIDsInGo reports whether a Snowflake takes IDs without a C call.
func TakesIDsInGo(s *Snowflake) bool {
	return s.open.Load().tick.cursor != nil
}

// NextInTick returns the ID that a Snowflake would take in Go after last, at a given time, or 0. It uses a cursor and a
// limit made for this call, so the Snowflake itself need not take IDs in Go.
func NextInTick(s *Snowflake, last ID, nowMs int64, isClosed bool) ID {
	t := tickAfter(s, last, isClosed)
	return t.nextAt(uint64(nowMs))
}

// NextByCounter is like NextInTick, but takes the time from a clock reading that is ago counts old and stays valid for
// window counts.
func NextByCounter(s *Snowflake, last ID, nowMs int64, ago, window uint64) ID {
	t := tickAfter(s, last, false)
	start, kept := counter.Now()-ago, uint64(nowMs)<<20|window
	t.clockStart, t.clockKept = &start, &kept
	return t.next()
}

func tickAfter(s *Snowflake, last ID, isClosed bool) tick {
	layout := s.Layout()
	data := layout.properties()
	cursor := data.timestamp.of(last)<<data.sequence.width | data.sequence.of(last)
	limit := uint64(1)<<(data.timestamp.width+data.sequence.width) - 1
	if isClosed {
		limit = 0
	}
	word := unsafe.Pointer(&limit)
	node := uint64(placed(layout, s.Node()))
	t := tick{
		cursor: &cursor, limit: &word, epochMs: uint64(layout.EpochMs()), tickMs: layout.TickMs(),
		sequenceMask: layout.IDsPerTick() - 1, sequenceBits: data.sequence.width, sequenceShift: data.sequence.shift,
		timestampShift: data.timestamp.shift, node: &node,
	}
	if real := s.open.Load().tick; real.cursor != nil {
		real.clockStart, real.clockKept, real.cursor, real.limit = nil, nil, t.cursor, t.limit
		if node != *real.node {
			panic("the library's node is not the Snowflake's")
		}
		real.node = t.node
		if t != real {
			panic("the library's words are not the layout's")
		}
	}
	return t
}

func placed(layout Layout, node uint64) ID {
	id, err := layout.Compose(layout.Epoch(), node, 0)
	if err != nil {
		panic(err)
	}
	return id
}

// CallsThatWait returns how many calls are waiting in a Snowflake's queue.
func CallsThatWait(s *Snowflake) (n int) {
	q := &s.open.Load().queue
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for w := q.first; w != nil; w = w.after {
		n++
	}
	return n
}

// HasPlace reports whether a Snowflake has a place among all waiting calls in the process.
func HasPlace(s *Snowflake) bool {
	q := &s.open.Load().queue
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.place != nil
}

// CallsAskedFor returns how many of a Snowflake's waiting calls the last poll requested IDs for.
func CallsAskedFor(s *Snowflake) int {
	q := &s.open.Load().queue
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.askedCalls
}

// Backdate makes all waiting calls appear to have arrived earlier. If hasServed is true, the queue appears to have just
// received IDs.
func Backdate(s *Snowflake, by time.Duration, hasServed bool) {
	q := &s.open.Load().queue
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if hasServed {
		q.served = time.Now()
	}
	for w := q.first; w != nil; w = w.after {
		w.since = w.since.Add(-by)
		w.tell()
	}
}

// Batch puts runs of IDs into a batch of size n, and returns the IDs that the batch then holds.
func Batch(s *Snowflake, n int, runs ...[]ID) []ID {
	w := waiter{ids: make([]ID, n)}
	for _, run := range runs {
		w.put(run, s.open.Load().layout.nodeMask())
	}
	return w.ids[:w.filled]
}

// CallsThatWaitForAStore returns how many calls are waiting in a Counter's queue.
func CallsThatWaitForAStore(c *Counter) (n int) {
	q := &c.open.Load().queue
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for w := q.first; w != nil; w = w.after {
		n++
	}
	return n
}

// CallsBehindOthers returns how many of a Counter's calls are waiting for others to leave the library.
func CallsBehindOthers(c *Counter) int {
	return int(c.open.Load().store.behind.Load())
}

// BackdateLastForAStore makes the last waiting call appear to have arrived earlier.
func BackdateLastForAStore(c *Counter, by time.Duration) {
	q := &c.open.Load().queue
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.last.since = q.last.since.Add(-by)
	q.last.tell()
}
