package polyflake_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

const (
	// A tick lasts a hundred years, and a new cursor treats the current tick as used up, so every call waits.
	neverLayout = "timestamp:8|node:4|sequence:1@0/3155760000s"
	// 16 IDs a second.
	slowLayout = "timestamp:35|worker:10|sequence:4@1735689600000/1s"
)

// handClock is a clock that is set by hand.
type handClock struct{ ms atomic.Int64 }

func (c *handClock) now() (time.Time, error) { return time.UnixMilli(c.ms.Load()), nil }

func (c *handClock) nextTick() { c.ms.Add(1000) }

// fullTick creates a Snowflake that issues 16 IDs a second, on a clock that is set by hand, and uses up the current
// second.
func fullTick(t *testing.T, clock *handClock, options ...polyflake.Option) *polyflake.Snowflake {
	t.Helper()
	clock.ms.Store(1750000000000)
	ids := must(polyflake.New(append([]polyflake.Option{
		polyflake.WithLayout(slowLayout), polyflake.Node(1), polyflake.MaxWait(time.Hour), polyflake.SequenceStart("zero"),
		polyflake.Clock(clock.now),
	}, options...)...))
	for range 16 {
		must(ids.TryNextID())
	}
	t.Cleanup(func() { ids.Close() })
	return ids
}

type answer struct {
	ids []polyflake.ID
	err error
}

// asks starts a call in a goroutine, and returns once n calls are waiting, or this one has ended.
func asks(ids *polyflake.Snowflake, n int, call func() ([]polyflake.ID, error)) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		got, err := call()
		answers <- answer{got, err}
	}()
	for polyflake.CallsThatWait(ids) != n && len(answers) == 0 {
		time.Sleep(100 * time.Microsecond)
	}
	return answers
}

func untilWaiting(ids *polyflake.Snowflake, n int) {
	for polyflake.CallsThatWait(ids) != n {
		time.Sleep(100 * time.Microsecond)
	}
}

func asksForOne(ids *polyflake.Snowflake, n int, ctx context.Context) <-chan answer {
	return asks(ids, n, func() ([]polyflake.ID, error) {
		id, err := ids.NextIDContext(ctx)
		return []polyflake.ID{id}, err
	})
}

// untilWaits returns once the given number of calls have found no free slot.
func untilWaits(ids *polyflake.Snowflake, calls uint64) {
	for must(ids.Stats()).Waits < calls {
		time.Sleep(time.Millisecond)
	}
}

func TestGoroutinesThatWaitAreNoThreads(t *testing.T) {
	const goroutines, most = 3000, 200
	ids := must(polyflake.New(polyflake.WithLayout(neverLayout), polyflake.Node(2), polyflake.MaxWait(time.Hour)))
	before := must(ids.Stats()).Waits
	buffer := make([][2]polyflake.ID, goroutines)
	calls := []func(n int) error{
		func(int) error { _, err := ids.NextID(); return err },
		func(n int) error { return ids.Fill(buffer[n][:]) },
		func(int) error { _, err := ids.NextIDs(3); return err },
	}
	var waiting sync.WaitGroup
	for n := range goroutines {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			if err := calls[n%len(calls)](n); !errors.Is(err, polyflake.ErrClosed) {
				t.Errorf("a call that waits ended with %v, not with closed", err)
			}
		}()
	}
	untilWaits(ids, before+goroutines)
	if threads := pprof.Lookup("threadcreate").Count(); threads > most {
		t.Errorf("%d goroutines that wait made %d threads, more than %d", goroutines, threads, most)
	}
	ids.Close()
	waiting.Wait()
}

func TestManySnowflakesThatWaitAreFewThreads(t *testing.T) {
	const snowflakes, most = 1000, 200
	// All wait for the end of the same short tick, over and over.
	var waiting sync.WaitGroup
	for node := range snowflakes {
		ids := must(polyflake.New(polyflake.WithLayout("timestamp:41|node:10|sequence:1@1735689600000/5ms"),
			polyflake.Node(uint64(node)), polyflake.MaxWait(time.Hour)))
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			for range 20 {
				must(ids.NextID())
			}
		}()
	}
	waiting.Wait()
	if threads := pprof.Lookup("threadcreate").Count(); threads > most {
		t.Errorf("%d Snowflakes that wait made %d threads, more than %d", snowflakes, threads, most)
	}
}

func TestCallsThatWaitAreServedInTheirOrder(t *testing.T) {
	for _, processors := range []int{1, 4} {
		t.Run(fmt.Sprint(processors), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			const calls = 100 // more than fit in six ticks
			var clock handClock
			ids := fullTick(t, &clock)
			var answers []<-chan answer
			for n := range calls {
				answers = append(answers, asksForOne(ids, n+1, context.Background()))
			}
			var got []polyflake.ID
			for n, answered := range answers {
				if n%16 == 0 {
					clock.nextTick()
				}
				a := <-answered
				if a.err != nil {
					t.Fatal(a.err)
				}
				got = append(got, a.ids...)
			}
			if !slices.IsSorted(got) || len(slices.Compact(got)) != calls {
				t.Errorf("not in the order in which they came: %d", got)
			}
			equal(t, "the ticks of the last", must(ids.Decode(got[calls-1])).Ticks-must(ids.Decode(got[0])).Ticks, 6)
			if polyflake.HasPlace(ids) {
				t.Error("nobody waits, but there is a place in the process's queue")
			}
		})
	}
}

func TestBatchesThatWaitLeaveOthersTheirShare(t *testing.T) {
	var clock handClock
	ids := fullTick(t, &clock)
	batch := asks(ids, 1, func() ([]polyflake.ID, error) { return ids.NextIDs(40) })
	other := asks(ids, 2, func() ([]polyflake.ID, error) { return ids.NextIDs(2) })
	one := asksForOne(ids, 3, context.Background())
	for polyflake.CallsAskedFor(ids) != 3 {
		time.Sleep(time.Millisecond)
	}
	clock.nextTick() // its IDs are dealt out as 14, 1 and 1
	first := (<-one).ids[0]
	clock.nextTick()
	second := (<-other).ids
	untilWaiting(ids, 1)
	clock.nextTick()
	got := (<-batch).ids
	equal(t, "the length", len(got), 40)
	tick := func(id polyflake.ID) uint64 { return must(ids.Decode(id)).Ticks }
	equal(t, "the tick of the single one", tick(first), tick(got[0]))
	equal(t, "the tick of the other batch's second", tick(second[1]), tick(got[0])+1)
	if !slices.IsSorted(got) || !slices.IsSorted(second) {
		t.Errorf("not in order: %d, %d", got, second)
	}
	all := slices.Concat(got, second, []polyflake.ID{first})
	slices.Sort(all)
	equal(t, "the number of different IDs", len(slices.Compact(all)), 43)
}

func TestABatchHasIDsOfOneNode(t *testing.T) {
	var clock handClock
	ids := fullTick(t, &clock)
	id := func(node, sequence uint64) polyflake.ID {
		return must(ids.Layout().Compose(time.UnixMilli(1750000000000), node, sequence))
	}
	got := polyflake.Batch(ids, 4, []polyflake.ID{id(1, 0), id(1, 1)}, []polyflake.ID{id(1, 2)})
	equal(t, "the IDs of one node", len(got), 3)
	got = polyflake.Batch(ids, 4, []polyflake.ID{id(1, 0), id(1, 1)}, []polyflake.ID{id(2, 2)})
	if !slices.Equal(got, []polyflake.ID{id(2, 2)}) {
		t.Errorf("a batch whose node changed has %d", got)
	}
}

func TestAContextEndsTheWait(t *testing.T) {
	var clock handClock
	ids := fullTick(t, &clock)
	over, cancel := context.WithCancel(context.Background())
	first := asksForOne(ids, 1, over)
	second := asksForOne(ids, 2, context.Background())
	soon, stop := context.WithTimeout(context.Background(), time.Millisecond)
	defer stop()
	third := asks(ids, 2, func() ([]polyflake.ID, error) {
		return make([]polyflake.ID, 2), ids.FillContext(soon, make([]polyflake.ID, 2))
	})
	if err := (<-third).err; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, not the context's", err)
	}
	last := asksForOne(ids, 3, context.Background())
	cancel()
	if err := (<-first).err; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, not the context's", err)
	}
	// The next call takes over, and no ID is lost.
	clock.nextTick()
	a, b := <-second, <-last
	if a.err != nil || b.err != nil {
		t.Fatal(a.err, b.err)
	}
	equal(t, "the first sequence", must(ids.Decode(a.ids[0])).Sequence, 0)
	equal(t, "the second sequence", must(ids.Decode(b.ids[0])).Sequence, 1)

	// A call whose context is already done fails even if there is nothing to wait for.
	for _, err := range []error{
		func() error { _, err := ids.NextIDContext(over); return err }(),
		func() error { _, err := ids.NextIDsContext(over, 2); return err }(),
		ids.FillContext(over, make([]polyflake.ID, 2)),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, not the context's", err)
		}
	}
	equal(t, "the third sequence", must(ids.Decode(must(ids.NextIDContext(context.Background())))).Sequence, 2)
	equal(t, "a batch", len(must(ids.NextIDsContext(context.Background(), 3))), 3)
}

// No matter which calls are cancelled and when, no ID repeats, and no call waits forever.
func TestContextsThatEndAmidCalls(t *testing.T) {
	const goroutines, rounds = 64, 40
	ids := must(polyflake.New(polyflake.WithLayout("yitter"), polyflake.Node(61), polyflake.MaxWait(time.Hour)))
	var all [goroutines][]polyflake.ID
	var asking sync.WaitGroup
	for n := range goroutines {
		asking.Add(1)
		go func() {
			defer asking.Done()
			for round := range rounds {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration((n+round)%7)*200*time.Microsecond)
				got, err := ids.NextIDsContext(ctx, 1+(n*round)%90)
				cancel()
				if err == nil {
					all[n] = append(all[n], got...)
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				all[n] = append(all[n], must(ids.NextID()))
			}
			if !slices.IsSorted(all[n]) {
				t.Error("the IDs of a goroutine do not increase")
			}
		}()
	}
	asking.Wait()
	together := slices.Concat(all[:]...)
	slices.Sort(together)
	equal(t, "the number of different IDs", len(slices.Compact(slices.Clone(together))), len(together))
	equal(t, "the calls that still wait", polyflake.CallsThatWait(ids), 0)
}

func TestAQueueThatMovesOnFailsNobody(t *testing.T) {
	var clock handClock
	ids := fullTick(t, &clock, polyflake.MaxWait(30*time.Minute))
	var answers []<-chan answer
	for n := range 20 {
		answers = append(answers, asksForOne(ids, n+1, context.Background()))
	}
	polyflake.Backdate(ids, 29*time.Minute, false)
	polyflake.Backdate(ids, time.Hour, true)
	clock.nextTick()
	for _, answered := range answers[:16] {
		if err := (<-answered).err; err != nil {
			t.Fatal(err)
		}
	}
	polyflake.Backdate(ids, time.Hour, false)
	clock.nextTick()
	for _, answered := range answers[16:] {
		if err := (<-answered).err; err != nil {
			t.Fatal(err)
		}
	}
}

func TestAQueueThatStandsStillFailsAllThatHaveWaitedLongEnough(t *testing.T) {
	var clock handClock
	ids := fullTick(t, &clock, polyflake.MaxWait(30*time.Minute))
	var answers []<-chan answer
	for n := range 20 {
		answers = append(answers, asksForOne(ids, n+1, context.Background()))
	}
	polyflake.Backdate(ids, time.Hour, false)
	late := asksForOne(ids, 1, context.Background())
	for _, answered := range answers {
		e := wantError(t, (<-answered).err, "sequence_exhausted")
		equal(t, "RetryAfter", e.RetryAfter(), time.Second)
	}
	clock.nextTick()
	if err := (<-late).err; err != nil {
		t.Fatal(err)
	}
}

func TestCloseEndsCallsThatWait(t *testing.T) {
	var clock handClock
	ids := fullTick(t, &clock)
	answers := []<-chan answer{
		asksForOne(ids, 1, context.Background()),
		asks(ids, 2, func() ([]polyflake.ID, error) { return ids.NextIDs(2) }),
		asksForOne(ids, 3, context.Background()),
	}
	ids.Close()
	for _, answered := range answers {
		wantError(t, (<-answered).err, "closed")
	}
}

// badClock is a custom clock that, when isBad is set, does something else the next time it is read.
func badClock(clock *handClock, isBad *atomic.Bool, instead func() error) polyflake.Option {
	return polyflake.Clock(func() (time.Time, error) {
		if isBad.Swap(false) {
			if err := instead(); err != nil {
				return time.Time{}, err
			}
		}
		return clock.now()
	})
}

func TestAClockThatFailsWhileCallsWaitFailsOne(t *testing.T) {
	stopped := errors.New("the clock stopped")
	for name, fails := range map[string]func() error{
		"error": func() error { return stopped },
		"panic": func() error { panic("the clock broke") },
		"exit":  func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var clock handClock
			var isBad atomic.Bool
			ids := fullTick(t, &clock, badClock(&clock, &isBad, fails))
			// The first call, which reads the clock.
			ended := make(chan any)
			go func() {
				var err error
				defer func() {
					if value := recover(); value != nil {
						ended <- value
					} else {
						ended <- err
					}
				}()
				_, err = ids.NextID()
			}()
			untilWaiting(ids, 1)
			next := asksForOne(ids, 2, context.Background())
			last := asks(ids, 3, func() ([]polyflake.ID, error) { return ids.NextIDs(2) })
			isBad.Store(true)
			switch value := <-ended; name {
			case "error":
				if err, _ := value.(error); !errors.Is(err, stopped) {
					t.Errorf("%v, not the clock's error", value)
				}
			case "panic":
				equal(t, "the panic", value, any("the clock broke"))
			default:
				equal(t, "the result", value, nil)
			}
			clock.nextTick()
			if err := (<-next).err; err != nil {
				t.Error(err)
			}
			if err := (<-last).err; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAClockMayTakeIDsWhileCallsWait(t *testing.T) {
	var clock handClock
	var isBad atomic.Bool
	var ids *polyflake.Snowflake
	var inside atomic.Pointer[error]
	// The tick is full, so this waits too, until its time is up.
	ids = fullTick(t, &clock, polyflake.MaxWait(50*time.Millisecond), badClock(&clock, &isBad, func() error {
		_, err := ids.NextID()
		inside.Store(&err)
		clock.nextTick()
		return nil
	}))
	first := asksForOne(ids, 1, context.Background())
	isBad.Store(true)
	if err := (<-first).err; err != nil && !errors.Is(err, polyflake.ErrSequenceExhausted) {
		t.Error(err)
	}
	// If the first call's time was up before isBad was set, this one reads the bad clock.
	for isBad.Load() {
		_, _ = ids.NextID()
	}
	wantError(t, *inside.Load(), "sequence_exhausted")
}

// The call that reads the clock for all the others waits for one of them. That one must notice, and give up.
func TestAClockThatWaitsForAnotherCallEnds(t *testing.T) {
	var clock handClock
	var isBad atomic.Bool
	var ids *polyflake.Snowflake
	var inside atomic.Pointer[error]
	ids = fullTick(t, &clock, polyflake.MaxWait(50*time.Millisecond), badClock(&clock, &isBad, func() error {
		ended := make(chan error)
		go func() {
			_, err := ids.NextID()
			ended <- err
		}()
		err := <-ended
		inside.Store(&err)
		return nil
	}))
	first := asksForOne(ids, 1, context.Background())
	isBad.Store(true)
	wantError(t, (<-first).err, "sequence_exhausted")
	// If the first call's time was up before isBad was set, this one reads the bad clock.
	for isBad.Load() {
		_, _ = ids.NextID()
	}
	wantError(t, *inside.Load(), "sequence_exhausted")
}

func TestAClockThatBlocksHoldsUpNobodyElse(t *testing.T) {
	var clock handClock
	var isBad atomic.Bool
	blocked, goOn := make(chan struct{}), make(chan struct{})
	ids := fullTick(t, &clock, polyflake.MaxWait(time.Hour), badClock(&clock, &isBad, func() error {
		close(blocked)
		<-goOn
		return nil
	}))
	first := asksForOne(ids, 1, context.Background())
	isBad.Store(true)
	<-blocked
	// These have waited long enough.
	over, cancel := context.WithCancel(context.Background())
	second := asksForOne(ids, 2, over)
	third := asksForOne(ids, 3, context.Background())
	polyflake.Backdate(ids, 2*time.Hour, false)
	cancel()
	if err := (<-second).err; !errors.Is(err, context.Canceled) && !errors.Is(err, polyflake.ErrSequenceExhausted) {
		t.Error(err)
	}
	wantError(t, (<-third).err, "sequence_exhausted")
	fourth := asksForOne(ids, 2, context.Background()) // its time is not up yet
	clock.nextTick()
	close(goOn)
	if err := (<-fourth).err; err != nil {
		t.Error(err)
	}
	<-first
}

// A node keeps its state file for as long as the process runs, so each run of the test uses another node.
var stateNode atomic.Uint64

func TestCallsThatWaitForAStateFile(t *testing.T) {
	const goroutines, rounds, most = 500, 20, 200
	ids := must(polyflake.New(polyflake.WithLayout("yitter"), polyflake.Node(stateNode.Add(1)), polyflake.MaxWait(time.Hour),
		polyflake.State(filepath.Join(t.TempDir(), "state"))))
	defer ids.Close()
	var all [goroutines][]polyflake.ID
	var asking sync.WaitGroup
	for n := range goroutines {
		asking.Add(1)
		go func() {
			defer asking.Done()
			for range rounds {
				all[n] = append(all[n], must(ids.NextID()))
			}
		}()
	}
	asking.Wait()
	together := slices.Concat(all[:]...)
	slices.Sort(together)
	equal(t, "the number of different IDs", len(slices.Compact(together)), goroutines*rounds)
	if threads := pprof.Lookup("threadcreate").Count(); threads > most {
		t.Errorf("%d goroutines made %d threads, more than %d", goroutines, threads, most)
	}
}

// Whether an ID comes through a queue, from the leading call of another queue, or from a call that blocks its thread,
// it is greater than every ID returned before its call began.
func TestIDsIncreaseFromCallToCallWhileCallsWait(t *testing.T) {
	const goroutines, rounds = 24, 200
	var snowflakes [2]*polyflake.Snowflake
	for n := range snowflakes {
		snowflakes[n] = must(polyflake.New(polyflake.WithLayout("timestamp:41|node:6|sequence:4@1735689600000/1ms"),
			polyflake.Node(34), polyflake.MaxWait(time.Hour)))
	}
	var highest atomic.Uint64
	var asking sync.WaitGroup
	for n := range goroutines {
		asking.Add(1)
		ids := snowflakes[n%2]
		ask := func() {
			for round := range rounds {
				before := highest.Load()
				got := must(ids.NextIDs(1 + (n+round)%4*(round%5)))
				if uint64(got[0]) <= before {
					t.Errorf("%d, after %d was returned", got[0], before)
				}
				last := uint64(got[len(got)-1])
				for seen := before; seen < last && !highest.CompareAndSwap(seen, last); seen = highest.Load() {
				}
			}
		}
		go func() {
			defer asking.Done()
			if n%4 > 0 {
				ask()
				return
			}
			// Inside a clock, where a call blocks its thread.
			var once sync.Once
			must(must(polyflake.New(polyflake.Node(1), polyflake.Clock(func() (time.Time, error) {
				once.Do(ask)
				return time.Now(), nil
			}))).NextID())
		}()
	}
	asking.Wait()
}
