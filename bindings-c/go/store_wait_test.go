//go:build unix

package polyflake_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

func threadsMade() int { return pprof.Lookup("threadcreate").Count() }

// mostForAStore is how many threads the calls of 400 goroutines may create. With a thread for each call, there would be
// at least 400. On a busy machine, Go adds some whenever the system preempts short C calls.
const mostForAStore = 200

func TestGoroutinesThatAskAStoreAreFewThreads(t *testing.T) {
	const goroutines, rounds = 400, 5
	address, _, _ := counterStore(t)
	counter := opened(t, "single", address, polyflake.CounterStep(1))
	before := threadsMade()
	var all [goroutines][]polyflake.ID
	var asking sync.WaitGroup
	for n := range goroutines {
		asking.Add(1)
		go func() {
			defer asking.Done()
			for round := range rounds {
				if (n+round)%4 == 0 {
					all[n] = append(all[n], must(counter.NextIDs(3))...)
				} else {
					all[n] = append(all[n], must(counter.NextID()))
				}
			}
		}()
	}
	asking.Wait()
	for _, numbers := range all {
		if !slices.IsSorted(numbers) {
			t.Fatal("not increasing: ", numbers)
		}
	}
	together := slices.Concat(all[:]...)
	slices.Sort(together)
	equal(t, "the number of different numbers", len(slices.Compact(slices.Clone(together))), len(together))
	if threads := threadsMade() - before; threads > mostForAStore {
		t.Errorf("%d goroutines made %d threads, more than %d", goroutines, threads, mostForAStore)
	}
}

// deadStore opens a counter that has nothing in hand and whose store does not answer.
func deadStore(t *testing.T, name string, maxWait time.Duration) *polyflake.Counter {
	t.Helper()
	address, stop, _ := counterStore(t)
	patient := opened(t, name, address, polyflake.CounterStep(1), polyflake.CounterMaxWait(time.Hour))
	must(patient.NextID())
	// Opens at once, because the other one is open.
	counter := opened(t, name, address, polyflake.CounterStep(1), polyflake.CounterMaxWait(maxWait))
	stop()
	return counter
}

func untilWaitingForAStore(t *testing.T, counter *polyflake.Counter, n int) {
	t.Helper()
	eventually(t, "calls that wait", func() bool { return polyflake.CallsThatWaitForAStore(counter) == n })
}

func TestGoroutinesThatWaitForADeadStoreAreFewThreads(t *testing.T) {
	const goroutines = 400
	counter := deadStore(t, "dead", time.Hour)
	before := threadsMade()
	var buffers [goroutines][2]polyflake.ID
	queued := []func(n int) error{
		func(int) error { _, err := counter.NextID(); return err },
		func(int) error { _, err := counter.NextIDs(100); return err },
		func(n int) error { return counter.Fill(buffers[n][:]) },
	}
	others := []func() error{
		func() error { _, err := counter.NextBlock(5); return err },
		func() error { _, err := counter.Peek(); return err },
		func() error { return counter.Raise(7) },
		func() error { _, err := counter.Remove(); return err },
	}
	var waiting sync.WaitGroup
	begin := func(call func() error) {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			wantError(t, call(), "closed")
		}()
	}
	for n := range goroutines {
		begin(func() error { return queued[n%len(queued)](n) })
		begin(others[n%len(others)])
	}
	untilWaitingForAStore(t, counter, goroutines)
	eventually(t, "all others", func() bool { return polyflake.CallsBehindOthers(counter) > goroutines/2 })
	if threads := threadsMade() - before; threads > mostForAStore {
		t.Errorf("%d goroutines made %d threads, more than %d", 2*goroutines, threads, mostForAStore)
	}
	counter.Close()
	waiting.Wait()
}

// Each call returns when its own time is up, even if an earlier one is still in the library.
func TestEachCallWaitsItsOwnTime(t *testing.T) {
	counter := deadStore(t, "bounds", 500*time.Millisecond)
	var waiting sync.WaitGroup
	for n := range 20 {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			time.Sleep(time.Duration(n) * 20 * time.Millisecond)
			if n%2 == 0 {
				_, err := counter.NextID()
				wantCounterUnavailable(t, err)
			} else {
				_, err := counter.NextBlock(3)
				wantCounterUnavailable(t, err)
			}
		}()
	}
	waiting.Wait()
	if n := polyflake.CallsThatWaitForAStore(counter); n != 0 {
		t.Error(n, "calls are still in the queue")
	}
}

func wantCounterUnavailable(t *testing.T, err error) {
	if !errors.Is(err, polyflake.ErrCounterUnavailable) {
		t.Error(err)
	}
}

// The call in the library may wait for an hour, but the one behind it has waited long enough.
func TestACallBehindAnotherEnds(t *testing.T) {
	counter := deadStore(t, "behind", time.Hour)
	first, second := make(chan error, 1), make(chan error, 1)
	ask := func(errs chan<- error) {
		_, err := counter.NextID()
		errs <- err
	}
	go ask(first)
	untilWaitingForAStore(t, counter, 1)
	go ask(second)
	untilWaitingForAStore(t, counter, 2)
	polyflake.BackdateLastForAStore(counter, 2*time.Hour)
	wantError(t, <-second, "counter_unavailable")
	counter.Close()
	wantError(t, <-first, "closed")
}

func TestContextsOfCounters(t *testing.T) {
	counter := deadStore(t, "contexts", time.Hour)
	over, cancel := context.WithCancel(context.Background())
	calls := []func() error{
		func() error { _, err := counter.NextIDContext(over); return err },
		func() error { _, err := counter.NextIDsContext(over, 1000); return err },
		func() error { return counter.FillContext(over, make([]polyflake.ID, 2)) },
		func() error { _, err := counter.NextBlockContext(over, 3); return err },
	}
	errs := make(chan error)
	for _, call := range calls {
		go func() { errs <- call() }()
	}
	untilWaitingForAStore(t, counter, 3)
	cancel()
	for range calls {
		if err := <-errs; err != context.Canceled {
			t.Error(err)
		}
	}
	for _, call := range calls { // the context is already done
		if err := call(); err != context.Canceled {
			t.Error(err)
		}
	}
	untilWaitingForAStore(t, counter, 0)
}

func TestACallGoesOnAfterOneThatLeft(t *testing.T) {
	address, stop, start := counterStore(t)
	counter := opened(t, "goes on", address, polyflake.CounterStep(1), polyflake.CounterMaxWait(time.Hour))
	last := must(counter.NextID())
	stop()
	over, cancel := context.WithCancel(context.Background())
	left, stayed := make(chan error, 1), make(chan answer, 1)
	go func() {
		_, err := counter.NextIDContext(over)
		left <- err
	}()
	untilWaitingForAStore(t, counter, 1)
	go func() {
		numbers, err := counter.NextIDs(5)
		stayed <- answer{numbers, err}
	}()
	untilWaitingForAStore(t, counter, 2)
	cancel()
	if err := <-left; err != context.Canceled {
		t.Error(err)
	}
	start()
	got := <-stayed
	if got.err != nil || got.ids[0] <= last || !slices.IsSorted(got.ids) {
		t.Error(got)
	}
}

func TestContextsOfSequences(t *testing.T) {
	address, stop, _ := counterStore(t)
	sequences := openedSequences[string](t, "contexts", address+"?init=always", polyflake.SequencesSections(1),
		polyflake.SequencesStep(1), polyflake.SequencesMaxWait(time.Hour))
	stop()
	for { // until nothing is in hand
		if _, err := sequences.TryNextID("alice"); err != nil {
			break
		}
	}
	before := threadsMade()
	over, cancel := context.WithCancel(context.Background())
	const goroutines = 400
	errs := make(chan error)
	for n := range goroutines {
		go func() {
			if n%2 == 0 {
				_, err := sequences.NextIDContext(over, "alice")
				errs <- err
			} else {
				_, err := sequences.NextIDsContext(over, []string{"alice", "bob"})
				errs <- err
			}
		}()
	}
	eventually(t, "a wait", func() bool { return must(sequences.Stats()).Waits > 0 })
	cancel()
	for range goroutines {
		if err := <-errs; err != context.Canceled {
			t.Error(err)
		}
	}
	if threads := threadsMade() - before; threads > mostForAStore {
		t.Errorf("%d goroutines made %d threads, more than %d", goroutines, threads, mostForAStore)
	}
}

func TestContextsOfOpening(t *testing.T) {
	// This server accepts connections but never answers.
	silent := must(net.Listen("tcp", "127.0.0.1:0"))
	defer silent.Close()
	store := "redis://" + silent.Addr().String() + "/0"
	for name, open := range map[string]func(ctx context.Context) error{
		"counter": func(ctx context.Context) error {
			_, err := polyflake.OpenCounterContext(ctx, "a", polyflake.CounterStore(store))
			return err
		},
		"sequences": func(ctx context.Context) error {
			_, err := polyflake.OpenSequencesContext[int](ctx, "a", polyflake.SequencesStore(store))
			return err
		},
		"lease": func(ctx context.Context) error {
			_, err := polyflake.NewContext(ctx, polyflake.Lease(store))
			return err
		},
	} {
		over, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		if err := open(over); err != context.DeadlineExceeded {
			t.Error(name, err)
		}
		cancel()
		over, cancel = context.WithCancel(context.Background())
		cancel()
		if err := open(over); err != context.Canceled {
			t.Error(name, err)
		}
	}
	address, _, _ := counterStore(t)
	over, cancel := context.WithCancel(context.Background())
	defer cancel()
	counter := must(polyflake.OpenCounterContext(over, "opens", polyflake.CounterStore(address)))
	defer counter.Close()
	equal(t, "the first number", must(counter.NextIDContext(over)), 1)
	broken := polyflake.Clock(func() (time.Time, error) { panic("the clock broke") })
	defer func() { equal(t, "the panic", recover(), any("the clock broke")) }()
	ids, err := polyflake.NewContext(over, polyflake.Node(801), broken, polyflake.State(t.TempDir()+"/state"))
	t.Error("no panic:", ids, err)
}

// No matter how a number is taken, it is greater than every number returned before its call began.
func TestNumbersIncreaseFromCallToCallWhileCallsWait(t *testing.T) {
	const goroutines, rounds = 48, 40
	address, _, _ := counterStore(t)
	for _, step := range []uint64{1, 7} {
		name := fmt.Sprint("increase", step)
		counters := [2]*polyflake.Counter{
			opened(t, name, address, polyflake.CounterStep(step)), opened(t, name, address, polyflake.CounterStep(step)),
		}
		var highest atomic.Uint64
		var asking sync.WaitGroup
		for n := range goroutines {
			asking.Add(1)
			go func() {
				defer asking.Done()
				counter := counters[n%2]
				for round := range rounds {
					before := highest.Load()
					var first, last polyflake.ID
					switch n % 3 {
					case 0:
						first = must(counter.NextID())
						last = first
					case 1:
						numbers := must(counter.NextIDs(1 + (n+round)%100))
						first, last = numbers[0], numbers[len(numbers)-1]
					default:
						first = must(counter.NextBlock(3))
						last = first + 2
					}
					if uint64(first) <= before {
						t.Errorf("step %d: %d, after %d was returned", step, first, before)
					}
					for seen := before; seen < uint64(last) && !highest.CompareAndSwap(seen, uint64(last)); seen = highest.Load() {
					}
				}
			}()
		}
		asking.Wait()
	}
}

func TestCounterAllocatesNothing(t *testing.T) {
	address, _, _ := counterStore(t)
	counter := opened(t, "none", address, polyflake.CounterStep(1_000_000))
	var few [10]polyflake.ID
	var many [1000]polyflake.ID
	for name, call := range map[string]func(){
		"NextID":    func() { must(counter.NextID()) },
		"few":       func() { must(0, counter.Fill(few[:])) },
		"many":      func() { must(0, counter.Fill(many[:])) },
		"NextBlock": func() { must(counter.NextBlock(2)) },
	} {
		if n := testing.AllocsPerRun(100, call); n != 0 {
			t.Error(name, n)
		}
	}
}

func BenchmarkCounter(b *testing.B) {
	counter := must(polyflake.OpenCounter("speed", polyflake.CounterStore(sequencesStore(b)), polyflake.CounterStep(1_000_000_000)))
	defer counter.Close()
	few, many := make([]polyflake.ID, 50), make([]polyflake.ID, 1000)
	b.Run("NextID", func(b *testing.B) {
		for b.Loop() {
			must(counter.NextID())
		}
	})
	b.Run("Fill x50", func(b *testing.B) {
		for b.Loop() {
			must(0, counter.Fill(few))
		}
	})
	b.Run("Fill x1000", func(b *testing.B) {
		for b.Loop() {
			must(0, counter.Fill(many))
		}
	})
	b.Run("NextBlock", func(b *testing.B) {
		for b.Loop() {
			must(counter.NextBlock(10))
		}
	})
}
