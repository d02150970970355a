package polyflake_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

// A tick holds more IDs than any test asks for, so that no call waits.
const wide = "timestamp:38|node:5|sequence:20@1735689600000/1ms"

func must[V any](value V, err error) V {
	if err != nil {
		panic(err)
	}
	return value
}

// fixed is a clock that always returns the same time.
func fixed() polyflake.Option {
	return polyflake.Clock(func() (time.Time, error) { return time.UnixMilli(1656432460105), nil })
}

func TestGoroutinesNeverRepeatAnID(t *testing.T) {
	const goroutines, rounds, batch = 8, 40, 500
	// Two Snowflakes on one cursor.
	options := []polyflake.Option{polyflake.WithLayout(wide), polyflake.Node(1)}
	snowflakes := []*polyflake.Snowflake{must(polyflake.New(options...)), must(polyflake.New(options...))}
	all := make([][]polyflake.ID, goroutines)
	var group sync.WaitGroup
	for n := range goroutines {
		group.Add(1)
		go func() {
			defer group.Done()
			ids := snowflakes[n%2]
			for range rounds {
				for range batch {
					all[n] = append(all[n], must(ids.NextID()))
				}
				all[n] = append(all[n], must(ids.NextIDs(batch))...)
			}
		}()
	}
	group.Wait()
	var together []polyflake.ID
	for _, ids := range all {
		if !slices.IsSorted(ids) {
			t.Error("the IDs of a goroutine do not increase")
		}
		together = append(together, ids...)
	}
	slices.Sort(together)
	equal(t, "the number of IDs", len(together), goroutines*rounds*batch*2)
	equal(t, "the number of different IDs", len(slices.Compact(together)), goroutines*rounds*batch*2)
}

func TestWaitingHoldsNoProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	// A new cursor treats the current tick, which lasts a hundred years, as used up.
	ids := must(polyflake.New(polyflake.WithLayout("timestamp:8|node:4|sequence:1@0/3155760000s"), polyflake.Node(1),
		polyflake.MaxWait(time.Second)))
	var others atomic.Int64
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				others.Add(1)
				runtime.Gosched()
			}
		}
	}()
	before := others.Load()
	_, err := ids.NextID()
	during := others.Load() - before
	close(done)
	e := wantError(t, err, "sequence_exhausted")
	equal(t, "RetryAfter", e.RetryAfter(), time.Duration(e.RetryAfterMs)*time.Millisecond)
	if during == 0 {
		t.Error("no other goroutine ran while one waited")
	}
}

func TestCloseAmidCalls(t *testing.T) {
	for round := range 30 {
		options := []polyflake.Option{polyflake.WithLayout(wide), polyflake.Node(2)}
		if round%2 == 1 {
			options = append(options, polyflake.Clock(func() (time.Time, error) { return time.Now(), nil }))
		}
		ids := must(polyflake.New(options...))
		buffer := make([]polyflake.ID, 64)
		var running sync.WaitGroup
		var made atomic.Int64
		for _, call := range []func() error{
			func() error { _, err := ids.NextID(); return err },
			func() error { _, err := ids.NextID(); return err },
			func() error { _, err := ids.TryNextID(); return err },
			func() error { _, err := ids.NextIDs(64); return err },
			func() error { return ids.Fill(buffer) },
			func() error { _, err := ids.Stats(); return err },
		} {
			running.Add(1)
			go func() {
				defer running.Done()
				for err := error(nil); !errors.Is(err, polyflake.ErrClosed); made.Add(1) {
					err = call()
					// The batches can use up even a tick with this many IDs.
					if err != nil && !errors.Is(err, polyflake.ErrClosed) &&
						!errors.Is(err, polyflake.ErrSequenceExhausted) {
						t.Error(err)
						return
					}
				}
			}()
		}
		for made.Load() < 500 {
			runtime.Gosched()
		}
		if err := ids.Close(); err != nil {
			t.Error(err)
		}
		runtime.GC() // would free it, if anything allowed that too early
		running.Wait()
	}
}

// The batch reads the clock repeatedly. If its Snowflake were freed too early, the clock would be freed with it.
func TestCloseAmidABatch(t *testing.T) {
	var ids *polyflake.Snowflake
	now := int64(1656432460105)
	closing := func() (time.Time, error) {
		now++
		err := ids.Close()
		runtime.GC()
		return time.UnixMilli(now), err
	}
	ids = must(polyflake.New(polyflake.WithLayout("timestamp:50|node:4|sequence:1@0/1ms"), polyflake.Node(1),
		polyflake.MaxWait(time.Minute), polyflake.Clock(closing)))
	_, err := ids.NextIDs(10) // more than fit in one tick
	wantError(t, err, "closed")
	_, err = ids.NextID()
	wantError(t, err, "closed")
}

func TestCloseEndsWaits(t *testing.T) {
	// A new cursor treats the current tick, which lasts a hundred years, as used up.
	ids := must(polyflake.New(polyflake.WithLayout("timestamp:8|node:4|sequence:1@0/3155760000s"), polyflake.Node(2),
		polyflake.MaxWait(24*time.Hour)))
	errs := make(chan error)
	calls := []func() error{
		func() error { _, err := ids.NextID(); return err },
		func() error { _, err := ids.NextIDs(3); return err },
		func() error { return ids.Fill(make([]polyflake.ID, 3)) },
	}
	for _, call := range calls {
		go func() { errs <- call() }()
	}
	for must(ids.Stats()).Waits < uint64(len(calls)) {
		runtime.Gosched()
	}
	must(0, ids.Close())
	for range calls {
		wantError(t, <-errs, "closed")
	}
}

func TestClosed(t *testing.T) {
	ids := must(polyflake.New(polyflake.Node(7), fixed()))
	id := must(ids.NextID())
	for range 2 {
		if err := ids.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, ids := range []*polyflake.Snowflake{ids, {}} {
		_, nextErr := ids.NextID()
		_, tryErr := ids.TryNextID()
		_, batchErr := ids.NextIDs(1)
		fillErr := ids.Fill(make([]polyflake.ID, 1))
		_, statsErr := ids.Stats()
		for _, err := range []error{nextErr, tryErr, batchErr, fillErr, statsErr} {
			wantError(t, err, "closed")
		}
		for id, err := range ids.All() {
			equal(t, "the ID", id, 0)
			wantError(t, err, "closed")
		}
	}
	equal(t, "Node", ids.Node(), 7)
	equal(t, "Layout", ids.Layout(), must(polyflake.ParseLayout("twitter")))
	equal(t, "the decoded node", must(ids.Decode(id)).Node, 7)
}

// collected waits until the garbage collector frees an object, and fails if it does not.
func collected(t *testing.T, dead <-chan struct{}) {
	t.Helper()
	for range 3000 {
		runtime.GC()
		select {
		case <-dead:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("it was not freed")
}

// watched returns a Snowflake whose clock keeps an object alive, and a channel that is closed when that object is
// collected. By then, the clock's handle has been deleted, and with it the Snowflake in C.
func watched(refer func(*polyflake.Snowflake)) (*polyflake.Snowflake, <-chan struct{}) {
	object := &[64]byte{}
	var itself *polyflake.Snowflake
	ids := must(polyflake.New(polyflake.Node(1), polyflake.Clock(func() (time.Time, error) {
		runtime.KeepAlive(itself)
		return time.UnixMilli(1656432460105 + int64(object[0])), nil
	})))
	if refer != nil {
		itself = ids
	}
	dead := make(chan struct{})
	runtime.AddCleanup(object, func(dead chan struct{}) { close(dead) }, dead)
	must(ids.NextID())
	return ids, dead
}

func TestDroppedIsFreed(t *testing.T) {
	_, dead := watched(nil)
	collected(t, dead)
}

func TestClosedIsFreed(t *testing.T) {
	for _, refer := range []func(*polyflake.Snowflake){nil, func(*polyflake.Snowflake) {}} {
		ids, dead := watched(refer)
		must(0, ids.Close())
		collected(t, dead)
		runtime.KeepAlive(ids)
	}
}

func TestLiveIsNotFreed(t *testing.T) {
	ids, dead := watched(nil)
	for range 3 {
		runtime.GC()
		must(ids.NextID())
	}
	select {
	case <-dead:
		t.Error("it was freed too early")
	default:
	}
	must(0, ids.Close())
	collected(t, dead)
}

func TestMemoryComesBack(t *testing.T) {
	resident := func() (pages int) {
		text, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Skip("only Linux reports how much memory is in use")
		}
		must(fmt.Sscan(strings.Fields(string(text))[1], &pages))
		return pages
	}
	layouts := 0
	churn := func() {
		for range 20_000 {
			layouts++ // a new layout each time
			must(polyflake.New(polyflake.Node(1), fixed()))
			must(polyflake.ParseLayout(fmt.Sprintf("timestamp:41|worker:10|sequence:12@%d/1ms", layouts)))
			if layouts%1000 == 0 {
				runtime.GC()
			}
		}
		runtime.GC()
	}
	// A leak would take 20,000 times 1 KB in every round; without one, memory eventually stops growing.
	more := 0
	for range 15 {
		before := resident()
		churn()
		if more = (resident() - before) * os.Getpagesize(); more < 5_000_000 {
			return
		}
	}
	t.Errorf("%d bytes more in use than one round earlier", more)
}

func TestUnusedLayoutsAreFreed(t *testing.T) {
	for n := range 1000 {
		must(polyflake.ParseLayout(fmt.Sprintf("timestamp:41|worker:10|sequence:12@1%d/1s", n)))
	}
	for range 3000 {
		runtime.GC()
		// Layouts from other tests may still be held.
		if polyflake.LayoutsHeld() < 500 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d layouts are still held", polyflake.LayoutsHeld())
}

func TestClockErrorIsReturned(t *testing.T) {
	broken := errors.New("the GPS is out of sight")
	failing := true
	ids := must(polyflake.New(polyflake.Node(1), polyflake.Clock(func() (time.Time, error) {
		if failing {
			return time.Time{}, broken
		}
		return time.UnixMilli(1656432460105), nil
	})))
	_, nextErr := ids.NextID()
	_, tryErr := ids.TryNextID()
	_, batchErr := ids.NextIDs(10)
	fillErr := ids.Fill(make([]polyflake.ID, 10))
	_, statsErr := ids.Stats()
	for _, err := range []error{nextErr, tryErr, batchErr, fillErr, statsErr} {
		e := wantError(t, err, "clock_failed")
		if e.Err != broken || !errors.Is(err, broken) || !strings.HasSuffix(err.Error(), ": the GPS is out of sight") {
			t.Errorf("got %v", err)
		}
	}
	failing = false
	must(ids.NextID())
}

func TestClockOutOfRange(t *testing.T) {
	for _, seconds := range []int64{math.MaxInt64, math.MaxInt64 / 1000 * 2, math.MinInt64, math.MinInt64 / 1000 * 2} {
		now := time.Unix(seconds, 0)
		ids := must(polyflake.New(polyflake.Node(1), polyflake.Clock(func() (time.Time, error) { return now, nil })))
		_, err := ids.NextID()
		if !errors.Is(err, polyflake.ErrClockFailed) {
			t.Errorf("got %v", err)
		}
		layout := must(polyflake.ParseLayout("mastodon"))
		_, minErr := layout.MinID(now)
		_, maxErr := layout.MaxID(now)
		_, composeErr := layout.Compose(now, 0, 0)
		for _, err := range []error{minErr, maxErr, composeErr} {
			if e := wantError(t, err, "time_out_of_range"); !strings.HasSuffix(e.Message, ": "+now.String()) {
				t.Errorf("got %v", err)
			}
		}
	}
}

// panicOf returns the value that a call panics with.
func panicOf(call func()) (value any) {
	defer func() { value = recover() }()
	call()
	return nil
}

func TestClockPanicReachesTheCaller(t *testing.T) {
	thrown := errors.New("the clock is broken")
	panicking := true
	ids := must(polyflake.New(polyflake.Node(1), polyflake.Clock(func() (time.Time, error) {
		if panicking {
			panic(thrown)
		}
		return time.UnixMilli(1656432460105), nil
	})))
	for _, call := range []func(){
		func() { ids.NextID() },
		func() { ids.TryNextID() },
		func() { ids.NextIDs(10) },
		func() { ids.Fill(make([]polyflake.ID, 10)) },
		func() { ids.Stats() },
	} {
		if value := panicOf(call); value != thrown {
			t.Errorf("panicked with %v", value)
		}
	}
	panicking = false
	must(ids.NextID())
}

func TestEachCallReportsItsOwnFailure(t *testing.T) {
	var readings atomic.Int64
	ids := must(polyflake.New(polyflake.Node(1), polyflake.Clock(func() (time.Time, error) {
		n := readings.Add(1)
		runtime.Gosched()
		if n%2 == 0 {
			panic(n)
		}
		return time.Time{}, fmt.Errorf("%w: %d", os.ErrInvalid, n)
	})))
	const goroutines, calls = 8, 1000
	var group sync.WaitGroup
	var seen sync.Map
	for range goroutines {
		group.Add(1)
		go func() {
			defer group.Done()
			for range calls {
				var err error
				failure := panicOf(func() { _, err = ids.NextID() })
				if failure == nil {
					failure = err.Error()
				}
				if _, twice := seen.LoadOrStore(failure, true); twice {
					t.Errorf("two calls failed with %v", failure)
				}
			}
		}()
	}
	group.Wait()
	equal(t, "the number of readings", readings.Load(), goroutines*calls)
}

func TestClockMayUseASnowflake(t *testing.T) {
	inner := must(polyflake.New(polyflake.Node(1), polyflake.Clock(func() (time.Time, error) {
		return time.Time{}, errors.New("inner")
	})))
	outer := must(polyflake.New(polyflake.Node(1), polyflake.Clock(func() (time.Time, error) {
		_, err := inner.NextID()
		if !strings.HasSuffix(err.Error(), ": inner") {
			t.Errorf("got %v", err)
		}
		return time.Time{}, errors.New("outer")
	})))
	_, err := outer.NextID()
	if !strings.HasSuffix(err.Error(), ": outer") {
		t.Errorf("got %v", err)
	}
}

// If a stack grows while a clock is running, it is moved. IDs must not be written to its old location.
func TestClockMayGrowTheStack(t *testing.T) {
	var deep func(n int) int
	deep = func(n int) int {
		var room [512]byte
		if n == 0 {
			return int(room[0])
		}
		return deep(n-1) + int(room[n%512])
	}
	ids := must(polyflake.New(polyflake.Node(1), polyflake.SequenceStart("zero"),
		polyflake.Clock(func() (time.Time, error) { return time.UnixMilli(1656432460105 + int64(deep(2000))), nil })))
	done := make(chan [8]polyflake.ID)
	go func() {
		var room [8]polyflake.ID
		if err := ids.Fill(room[:]); err != nil {
			t.Error(err)
		}
		done <- room
	}()
	for n, id := range <-done {
		equal(t, "the sequence", must(ids.Decode(id)).Sequence, uint64(n))
	}
}

func TestAll(t *testing.T) {
	healthy := true
	ids := must(polyflake.New(polyflake.Node(1), polyflake.SequenceStart("zero"), polyflake.Clock(func() (time.Time, error) {
		if !healthy {
			return time.Time{}, errors.New("broken")
		}
		return time.UnixMilli(1656432460105), nil
	})))
	var sequences []uint64
	var failures []error
	for id, err := range ids.All() {
		if err != nil {
			failures = append(failures, err)
			continue
		}
		sequences = append(sequences, must(ids.Decode(id)).Sequence)
		healthy = len(sequences) < 3
	}
	equal(t, "the sequences", fmt.Sprint(sequences), "[0 1 2]")
	equal(t, "the number of errors", len(failures), 1)
	healthy = true
	for id, err := range ids.All() {
		equal(t, "the sequence", must(ids.Decode(id)).Sequence, 3)
		equal(t, "the error", err, nil)
		break
	}
}

func TestStats(t *testing.T) {
	now := time.UnixMilli(1656432460105)
	ids := must(polyflake.New(polyflake.Node(1), polyflake.Clock(func() (time.Time, error) { return now, nil })))
	equal(t, "before the first ID", must(ids.Stats()), polyflake.Stats{})
	must(ids.NextID())
	now = now.Add(-300 * time.Millisecond)
	must(ids.NextID())
	equal(t, "after a step back", must(ids.Stats()),
		polyflake.Stats{Rollbacks: 1, LeadMs: 300, LastIssued: time.UnixMilli(1656432460105).UTC()})
	now = now.Add(-time.Second)
	_, err := ids.NextID()
	e := wantError(t, err, "clock_moved_backwards")
	equal(t, "Behind", e.Behind(), 1300*time.Millisecond)
}

func TestErrorDurationsDoNotWrap(t *testing.T) {
	e := &polyflake.Error{BehindMs: math.MaxUint64, RetryAfterMs: 1 << 62}
	equal(t, "Behind", e.Behind(), math.MaxInt64/time.Millisecond*time.Millisecond)
	equal(t, "RetryAfter", e.RetryAfter(), e.Behind())
}

func TestMisuse(t *testing.T) {
	newFails := func(name string, options ...polyflake.Option) {
		t.Helper()
		ids, err := polyflake.New(append([]polyflake.Option{fixed()}, options...)...)
		wantError(t, err, name)
		if ids != nil {
			t.Error("New returned a Snowflake and an error")
		}
	}
	newFails("invalid_node")
	newFails("invalid_node", polyflake.Node(1024))
	newFails("invalid_node", polyflake.NodeFields(nil))
	newFails("invalid_node", polyflake.NodeFields(map[string]uint64{"datacenter": 1, "worker\x00": 7}))
	newFails("invalid_node", polyflake.NodeFields(map[string]uint64{"datacenter=1,worker": 7}))
	newFails("invalid_node", polyflake.Set("node", "7\x00"))
	newFails("unknown_layout", polyflake.WithLayout("twitter\x00"), polyflake.Node(1))
	newFails("unknown_layout", polyflake.WithLayout("twitter\xff"), polyflake.Node(1))
	newFails("invalid_option", polyflake.WithLayout(polyflake.Layout{}), polyflake.Node(1))
	newFails("invalid_option", polyflake.Node(1), polyflake.MaxWait(-time.Millisecond))
	newFails("invalid_option", polyflake.Node(1), polyflake.MaxWait(1500*time.Microsecond))
	newFails("invalid_option", polyflake.Node(1), polyflake.MaxWait(math.MaxInt64))
	newFails("invalid_option", polyflake.Node(1), polyflake.SequenceStart("one"))
	newFails("invalid_option", polyflake.Node(1), polyflake.Set("max_wait_ms\x00", "1"))
	newFails("invalid_option", polyflake.Node(1), polyflake.Set("nodes", "1"))

	// The last value wins.
	equal(t, "Node", must(polyflake.New(fixed(), polyflake.Node(1), polyflake.Node(2))).Node(), 2)
	fields := polyflake.NodeFields(map[string]uint64{"datacenter": 1, "worker": 2})
	equal(t, "Node", must(polyflake.New(fixed(), polyflake.Node(1), fields)).Node(), 34)
	equal(t, "Node", must(polyflake.New(fixed(), fields, polyflake.Node(1))).Node(), 1)
	others := polyflake.NodeFields(map[string]uint64{"datacenter": 3, "worker": 4})
	equal(t, "Node", must(polyflake.New(fixed(), fields, others)).Node(), 100)
	newFails("invalid_node", fields, polyflake.NodeFields(map[string]uint64{"datacenter": 3}))

	// Snowflakes with built-in clocks share a cursor and its bounds.
	must(polyflake.New(polyflake.WithLayout(wide), polyflake.Node(3), polyflake.Clock(nil)))
	_, err := polyflake.New(polyflake.WithLayout(wide), polyflake.Node(3), polyflake.MaxAhead(time.Second))
	wantError(t, err, "invalid_option")

	ids := must(polyflake.New(fixed(), polyflake.Node(1)))
	for _, n := range []int{0, -1, polyflake.MaxBatch + 1, math.MinInt, math.MaxInt} {
		batch, err := ids.NextIDs(n)
		if e := wantError(t, err, "invalid_option"); !strings.Contains(e.Message, fmt.Sprint(n)) {
			t.Errorf("got %v", err)
		}
		equal(t, "the length", len(batch), 0)
	}
	equal(t, "Fill(nil)", ids.Fill(nil), nil)
	equal(t, "Fill of an empty slice", ids.Fill([]polyflake.ID{}), nil)

	layout := must(polyflake.ParseLayout("twitter"))
	for _, node := range []map[string]uint64{nil, {}, {"datacenter=1,worker": 1}, {"datacenter": 1, "worker\x00": 1}, {"": 1}} {
		_, err := layout.ComposeFields(time.UnixMilli(1656432460105), node, 0)
		wantError(t, err, "invalid_node")
	}
	_, err = polyflake.ID(1).Format("base64")
	wantError(t, err, "invalid_option")
	_, err = polyflake.ParseID("1", "hex\x00")
	wantError(t, err, "invalid_option")
	_, err = polyflake.ParseID("1\x00", polyflake.Hex)
	wantError(t, err, "invalid_id")
}

func TestZeroLayout(t *testing.T) {
	var layout polyflake.Layout
	equal(t, "String", layout.String(), "")
	equal(t, "TotalBits", layout.TotalBits(), 0)
	equal(t, "the number of fields", len(layout.Fields()), 0)
	_, decodeErr := layout.Decode(1)
	_, composeErr := layout.Compose(time.UnixMilli(1), 0, 0)
	_, minErr := layout.MinID(time.UnixMilli(1))
	_, maxErr := layout.MaxID(time.UnixMilli(1))
	for _, err := range []error{decodeErr, composeErr, minErr, maxErr} {
		wantError(t, err, "invalid_option")
	}
	equal(t, "the number of fields of the zero Decoded", len(polyflake.Decoded{}.Fields()), 0)
}

func TestValuesCompare(t *testing.T) {
	layout := must(polyflake.ParseLayout("timestamp:41|worker:10|sequence:12@5/1000ms"))
	same := must(polyflake.ParseLayout("timestamp:41|worker:10|sequence:12@5/1s"))
	equal(t, "the same layout", same, layout)
	if must(polyflake.ParseLayout("timestamp:41|worker:10|sequence:12@6/1s")) == layout {
		t.Error("different layouts are equal")
	}
	count := map[polyflake.Layout]int{layout: 1}
	runtime.GC()
	equal(t, "the entry", count[must(polyflake.ParseLayout("timestamp:41|worker:10|sequence:12@5/1s"))], 1)
	equal(t, "the same decoded", must(layout.Decode(4097)), must(same.Decode(4097)))
	if must(layout.Decode(4097)) == must(layout.Decode(4098)) {
		t.Error("different decoded IDs are equal")
	}
	fields := layout.Fields()
	fields[0].Name = "changed"
	equal(t, "the first field", layout.Fields()[0].Name, "timestamp")
}

// A layout is always equal to itself, no matter how many goroutines parse it while it is being collected.
func TestEqualLayoutsStayEqual(t *testing.T) {
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := range 300 {
				first := must(polyflake.ParseLayout("timestamp:40|worker:11|sequence:12@7/1ms"))
				if n%50 == 0 {
					runtime.GC()
				}
				if must(polyflake.ParseLayout(first.String())) != first {
					t.Error("equal layouts differ")
				}
			}
		}()
	}
	group.Wait()
}

func TestJSON(t *testing.T) {
	type row struct {
		ID     polyflake.ID
		Parent *polyflake.ID
		ByID   map[polyflake.ID]string
		Layout polyflake.Layout
	}
	given := row{math.MaxUint64, nil, map[polyflake.ID]string{7: "seven"}, must(polyflake.ParseLayout("js-safe"))}
	text := must(json.Marshal(given))
	equal(t, "the JSON", string(text), `{"ID":"18446744073709551615","Parent":null,"ByID":{"7":"seven"},`+
		`"Layout":"timestamp:41|worker:4|sequence:8@1735689600000/1ms"}`)
	var read row
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	equal(t, "the row read back", fmt.Sprint(read), fmt.Sprint(given))
	equal(t, "the layout read back", read.Layout, given.Layout)

	id := polyflake.ID(5)
	for _, text := range []string{`7`, `7.0`, `true`, `{}`, `["7"]`} {
		if err := json.Unmarshal([]byte(text), &id); err == nil {
			t.Errorf("%s was read", text)
		}
	}
	for _, text := range []string{`""`, `"-7"`, `"0x7"`, `"7\u0000"`, `"18446744073709551616"`} {
		wantError(t, json.Unmarshal([]byte(text), &id), "invalid_id")
	}
	wantError(t, json.Unmarshal([]byte(`"twiter"`), &read.Layout), "unknown_layout")
	if err := json.Unmarshal([]byte("null"), &id); err != nil {
		t.Error(err)
	}
	equal(t, "what was not read", id, 5)
	equal(t, "the layout that was not read", read.Layout, given.Layout)
}

func TestSQL(t *testing.T) {
	for _, id := range []polyflake.ID{0, 1541815603606036480, math.MaxInt64} {
		value := must(id.Value())
		equal(t, "Value", value, any(int64(id)))
		for _, source := range []any{value, uint64(id), id.String(), []byte(id.String())} {
			read := sql.Null[polyflake.ID]{}
			if err := read.Scan(source); err != nil {
				t.Fatal(err)
			}
			equal(t, "what was read", read, sql.Null[polyflake.ID]{V: id, Valid: true})
		}
	}
	for _, id := range []polyflake.ID{math.MaxInt64 + 1, math.MaxUint64} {
		value, err := id.Value()
		wantError(t, err, "invalid_id")
		equal(t, "Value", value, nil)
	}
	id := polyflake.ID(5)
	for _, source := range []any{int64(-1), int64(math.MinInt64), "-1", "1.5", "", []byte("x")} {
		wantError(t, id.Scan(source), "invalid_id")
	}
	for _, source := range []any{nil, 1.0, true, time.Now()} {
		if id.Scan(source) == nil {
			t.Errorf("%v was read", source)
		}
	}
	equal(t, "what was not read", id, 5)
	var null sql.Null[polyflake.ID]
	if err := null.Scan(nil); err != nil || null.Valid {
		t.Errorf("NULL gives %v, %v", null, err)
	}
}

func TestPrints(t *testing.T) {
	decoded := must(must(polyflake.ParseLayout("discord")).Decode(175928847299117063))
	equal(t, "the decoded", decoded.String(),
		"175928847299117063: 2016-04-30T11:18:25.796Z worker 1 process 0 sequence 7")
	equal(t, "the ID", fmt.Sprintf("%v %d %x", decoded.ID, decoded.ID, uint64(decoded.ID)),
		"175928847299117063 175928847299117063 271065ac1020007")
	if polyflake.Version() == "" {
		t.Error("the library has no version")
	}
}

func TestCallsDoNotAllocate(t *testing.T) {
	ids := must(polyflake.New(polyflake.WithLayout(wide), polyflake.Node(4)))
	clocked := must(polyflake.New(polyflake.WithLayout(wide), polyflake.Node(4),
		polyflake.Clock(func() (time.Time, error) { return time.Now(), nil })))
	layout := ids.Layout()
	buffer := make([]polyflake.ID, 10)
	must(ids.NextID()) // the first ID of a cursor may have to wait
	for name, call := range map[string]func(){
		"NextID":              func() { must(ids.NextID()) },
		"TryNextID":           func() { must(ids.TryNextID()) },
		"Fill":                func() { must(0, ids.Fill(buffer)) },
		"NextID with a clock": func() { must(clocked.NextID()) },
		"Decode":              func() { must(layout.Decode(1)) },
		"MinID":               func() { must(layout.MinID(time.UnixMilli(1750000000000))) },
	} {
		equal(t, "the allocations of "+name, testing.AllocsPerRun(200, call), 0)
	}
}

func run(t *testing.T, directory string, environment []string, command ...string) (string, error) {
	t.Helper()
	process := exec.Command(command[0], command[1:]...)
	process.Dir = directory
	process.Env = append(os.Environ(), environment...)
	output, err := process.CombinedOutput()
	return string(output), err
}

func TestBuildWithoutCgoSaysWhy(t *testing.T) {
	output, err := run(t, ".", []string{"CGO_ENABLED=0"}, "go", "build", ".")
	if err == nil {
		t.Fatal("it builds")
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	last := lines[len(lines)-1]
	if !strings.HasSuffix(last, "undefined: polyflake_needs_cgo_so_set_CGO_ENABLED_1_and_install_a_C_compiler") ||
		len(lines) != 2 { // the first line names the package
		t.Error(output)
	}
}

// Every program in the README builds and runs, each in its own module.
func TestReadmePrograms(t *testing.T) {
	readme := must(os.ReadFile("README.md"))
	here := must(filepath.Abs("."))
	ran := 0
	for _, block := range bytes.Split(readme, []byte("```go\n"))[1:] {
		program, _, _ := bytes.Cut(block, []byte("```"))
		if !bytes.HasPrefix(program, []byte("package main")) {
			continue
		}
		ran++
		directory := t.TempDir()
		must(0, os.WriteFile(filepath.Join(directory, "main.go"), program, 0o600))
		module := "module example\n\ngo 1.24\n\nrequire github.com/polyflake/polyflake/bindings-c/go v0.0.0\n\n" +
			"replace github.com/polyflake/polyflake/bindings-c/go => " + here + "\n"
		must(0, os.WriteFile(filepath.Join(directory, "go.mod"), []byte(module), 0o600))
		if output, err := run(t, directory, nil, "go", "vet", "."); err != nil {
			t.Fatal(output)
		}
		output, err := run(t, directory, nil, "go", "run", ".")
		if err != nil {
			t.Fatal(output)
		}
		t.Log(output)
	}
	if ran == 0 {
		t.Error("the README has no programs")
	}
}
