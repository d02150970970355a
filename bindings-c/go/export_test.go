package polyflake

import (
	"time"
	"unsafe"

	"github.com/polyflake/polyflake/bindings-c/go/internal/counter"
)

// LayoutsHeld counts the entries of the table of layouts.
func LayoutsHeld() (n int) {
	layouts.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}

// TakesIDsInGo tells whether a Snowflake takes IDs without a call of C.
func TakesIDsInGo(s *Snowflake) bool {
	return s.open.Load().tick.cursor != nil
}

// NextInTick returns the ID that a Snowflake takes in Go after last, at a time, or 0. On its own words, so it need not be
// a Snowflake that takes IDs in Go.
func NextInTick(s *Snowflake, last ID, nowMs int64, isClosed bool) ID {
	t := tickAfter(s, last, isClosed)
	return t.nextAt(uint64(nowMs))
}

// NextByCounter is like NextInTick, but the time was read that many counts ago, and is valid for a window of counts.
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

// CallsThatWait is how many calls of a Snowflake wait in its queue.
func CallsThatWait(s *Snowflake) (n int) {
	q := &s.open.Load().queue
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for w := q.first; w != nil; w = w.after {
		n++
	}
	return n
}

// HasPlace tells whether a Snowflake has a place among the calls of the process that wait.
func HasPlace(s *Snowflake) bool {
	q := &s.open.Load().queue
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.place != nil
}

// CallsAskedFor is for how many of them the last poll asked.
func CallsAskedFor(s *Snowflake) int {
	q := &s.open.Load().queue
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.askedCalls
}

// Backdate makes all calls that wait have come so much earlier, and says whether one of them has just got IDs.
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

// Batch gives runs to a batch of this size, and returns the IDs that the batch then holds.
func Batch(s *Snowflake, n int, runs ...[]ID) []ID {
	w := waiter{ids: make([]ID, n)}
	for _, run := range runs {
		w.put(run, s.open.Load().layout.nodeMask())
	}
	return w.ids[:w.filled]
}

// CallsThatWaitForAStore is how many calls of a Counter wait in its queue.
func CallsThatWaitForAStore(c *Counter) (n int) {
	q := &c.open.Load().queue
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for w := q.first; w != nil; w = w.after {
		n++
	}
	return n
}

// CallsBehindOthers is how many calls of a Counter wait until fewer others are in the library.
func CallsBehindOthers(c *Counter) int {
	return int(c.open.Load().store.behind.Load())
}

// BackdateLastForAStore makes the last call that waits have come so much earlier.
func BackdateLastForAStore(c *Counter, by time.Duration) {
	q := &c.open.Load().queue
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.last.since = q.last.since.Add(-by)
	q.last.tell()
}
