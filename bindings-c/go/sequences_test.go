//go:build unix

package polyflake_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

// sequencesStore returns the address of an SQLite file that does not exist yet.
func sequencesStore(t testing.TB) string {
	return "sqlite://" + filepath.Join(t.TempDir(), "numbers.db")
}

func openedSequences[K polyflake.SequenceKey](
	t testing.TB, name, address string, options ...polyflake.SequencesOption,
) *polyflake.Sequences[K] {
	t.Helper()
	sequences, err := polyflake.OpenSequences[K](name, append(options, polyflake.SequencesStore(address))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sequences.Close() })
	return sequences
}

// TestSequencesChild is not a test on its own: another test runs it in a child process, which closes nothing.
func TestSequencesChild(t *testing.T) {
	if address, isChild := os.LookupEnv("POLYFLAKE_TEST_SEQUENCES"); isChild {
		inbox, err := polyflake.OpenSequences[string]("inbox", polyflake.SequencesStore(address))
		if err != nil {
			fmt.Println("said", err)
			return
		}
		fmt.Println("said", must(inbox.NextID("alice")))
	}
}

func TestSequences(t *testing.T) {
	address := sequencesStore(t)
	inbox := openedSequences[string](t, "inbox", address)
	for want := polyflake.ID(1); want <= 3; want++ {
		if alice, bob := must(inbox.NextID("alice")), must(inbox.NextID("bob")); alice != want || bob != want {
			t.Error(alice, bob, want)
		}
	}
	if number := must(inbox.TryNextID("alice")); number != 4 {
		t.Error(number)
	}
	numbers := must(inbox.NextIDs([]string{"bob", "alice", "bob", "", "carol", "bob", ""}))
	if !slices.Equal(numbers, []polyflake.ID{4, 5, 5, 1, 1, 6, 2}) {
		t.Error(numbers)
	}
	for _, none := range [][]string{nil, {}} {
		if numbers := must(inbox.NextIDs(none)); len(numbers) != 0 {
			t.Error(numbers)
		}
	}
	if numbers := must(inbox.NextIDs([]string{"", ""})); !slices.Equal(numbers, []polyflake.ID{3, 4}) {
		t.Error(numbers)
	}
	long := strings.Repeat("k", 1_000_000)
	for _, key := range []string{"", "a\x00b", "a\x00c", "日本", long} {
		before := must(inbox.NextID(key))
		if next := must(inbox.NextIDs([]string{key, key})); next[0] != before+1 || next[1] != before+2 {
			t.Errorf("%.10q %v %v", key, before, next)
		}
	}
	same, other := openedSequences[string](t, "inbox", address), openedSequences[string](t, "outbox", address)
	numbers = []polyflake.ID{must(same.NextID("alice")), must(inbox.NextID("alice")), must(other.NextID("alice"))}
	if !slices.Equal(numbers, []polyflake.ID{6, 7, 1}) {
		t.Error(numbers)
	}
	same.Close()
	stats := must(inbox.Stats())
	if stats.Keys != 8 || stats.Evicted != 0 || stats.Moves == 0 || stats.TimeLeft <= 0 || stats.TimeLeft > 30*time.Second {
		t.Errorf("%+v", stats)
	}
	if inbox.Name() != "inbox" {
		t.Error(inbox.Name())
	}
	inbox.Close()
	if number := must(openedSequences[string](t, "inbox", address).NextID("alice")); number != 8 {
		t.Error(number)
	}
}

type (
	ownText    string
	ownSigned  int16
	ownNatural uint32
)

func TestKeysOfSequences(t *testing.T) {
	address := sequencesStore(t)
	count := polyflake.ID(0)
	fives := map[string]func() polyflake.ID{
		"int":     func() polyflake.ID { return nextOf(t, address, 5) },
		"int8":    func() polyflake.ID { return nextOf(t, address, int8(5)) },
		"int16":   func() polyflake.ID { return nextOf(t, address, ownSigned(5)) },
		"int32":   func() polyflake.ID { return nextOf(t, address, int32(5)) },
		"int64":   func() polyflake.ID { return nextOf(t, address, int64(5)) },
		"uint":    func() polyflake.ID { return nextOf(t, address, uint(5)) },
		"uint8":   func() polyflake.ID { return nextOf(t, address, uint8(5)) },
		"uint16":  func() polyflake.ID { return nextOf(t, address, uint16(5)) },
		"uint32":  func() polyflake.ID { return nextOf(t, address, ownNatural(5)) },
		"uint64":  func() polyflake.ID { return nextOf(t, address, uint64(5)) },
		"the ID":  func() polyflake.ID { return nextOf(t, address, polyflake.ID(5)) },
		"a month": func() polyflake.ID { return nextOf(t, address, time.May) },
	}
	// These sequences stay open, so that all of the calls below share one count.
	openedSequences[int](t, "keys", address)
	for name, five := range fives {
		count += 3
		if number := five(); number != count {
			t.Error(name, number, count)
		}
	}
	if number := nextOf(t, address, "5"); number != 3 {
		t.Error(number)
	}
	if number := nextOf(t, address, ownText("5")); number != 6 {
		t.Error(number)
	}
	for _, key := range []int64{-5, -1, 0, math.MinInt64, math.MaxInt64} {
		if number := nextOf(t, address, key); number != 3 {
			t.Error(key, number)
		}
	}
	for _, key := range []uint64{math.MaxUint64, 1 << 63} {
		if number := nextOf(t, address, key); number != 3 {
			t.Error(key, number)
		}
	}
	if number := nextOf(t, address, int8(-1)); number != 6 {
		t.Error(number)
	}
	texts := openedSequences[string](t, "keys", address)
	for _, key := range []string{"\xff", "al\xc3"} {
		_, one := texts.NextID(key)
		_, two := texts.TryNextID(key)
		_, three := texts.NextIDs([]string{"fresh", key})
		for n, err := range []error{one, two, three} {
			if !errors.Is(err, polyflake.ErrInvalidOption) || !strings.Contains(err.Error(), "UTF-8") {
				t.Error(n, err)
			}
		}
	}
	if number := must(texts.NextID("fresh")); number != 1 {
		t.Error(number)
	}
}

// nextOf takes three numbers for a key, each in a different way, and returns the last.
func nextOf[K polyflake.SequenceKey](t *testing.T, address string, key K) polyflake.ID {
	t.Helper()
	sequences := openedSequences[K](t, "keys", address)
	first := must(sequences.NextID(key))
	second := must(sequences.TryNextID(key))
	third := must(sequences.NextIDs([]K{key}))
	if second != first+1 || third[0] != first+2 {
		t.Error(key, first, second, third)
	}
	return third[0]
}

func TestSequencesWithFewKeys(t *testing.T) {
	sequences := openedSequences[int](t, "few", sequencesStore(t), polyflake.SequencesSections(1), polyflake.SequencesMaxKeys(2))
	last := map[int]polyflake.ID{}
	for n := range 100 {
		key := n * n % 5
		number := must(sequences.NextID(key))
		if number <= last[key] {
			t.Error(key, number, last[key])
		}
		last[key] = number
	}
	if stats := must(sequences.Stats()); stats.Keys > 2 || stats.Evicted == 0 {
		t.Errorf("%+v", stats)
	}
}

func TestSequencesGoroutines(t *testing.T) {
	address := sequencesStore(t)
	one, two := openedSequences[string](t, "many", address), openedSequences[string](t, "many", address)
	const goroutines, each = 16, 300
	var group sync.WaitGroup
	var mutex sync.Mutex
	seen := map[string]map[polyflake.ID]bool{"alice": {}, "bob": {}}
	for n := range goroutines {
		group.Add(1)
		go func() {
			defer group.Done()
			sequences := []*polyflake.Sequences[string]{one, two}[n%2]
			taken := map[string][]polyflake.ID{}
			for range each {
				numbers := must(sequences.NextIDs([]string{"alice", "bob", "alice"}))
				taken["alice"] = append(taken["alice"], numbers[0], numbers[2], must(sequences.NextID("alice")))
				taken["bob"] = append(taken["bob"], numbers[1], must(sequences.NextID("bob")))
			}
			mutex.Lock()
			defer mutex.Unlock()
			for key, numbers := range taken {
				if !slices.IsSorted(numbers) {
					t.Error("not increasing")
				}
				for _, number := range numbers {
					if seen[key][number] {
						t.Errorf("%s: %d is repeated", key, number)
					}
					seen[key][number] = true
				}
			}
		}()
	}
	group.Wait()
	if alice, bob := must(one.NextID("alice")), must(one.NextID("bob")); alice != goroutines*each*3+1 || bob != goroutines*each*2+1 {
		t.Error(alice, bob)
	}
}

func TestSequencesDoNotWait(t *testing.T) {
	sequences := openedSequences[string](t, "near", sequencesStore(t), polyflake.SequencesSections(1), polyflake.SequencesStep(1))
	last := polyflake.ID(0)
	for { // until the store falls behind
		number, err := sequences.TryNextID("alice")
		if err != nil {
			if !errors.Is(err, polyflake.ErrCounterUnavailable) {
				t.Error(err)
			}
			break
		}
		if number != last+1 {
			t.Error(number, last)
		}
		last = number
	}
	for range 20 {
		last++
		if number := must(sequences.NextID("alice")); number != last {
			t.Error(number, last)
		}
	}
	if stats := must(sequences.Stats()); stats.Moves < 2 {
		t.Errorf("%+v", stats)
	}
}

func TestSequencesAreClosed(t *testing.T) {
	sequences := openedSequences[string](t, "closed", sequencesStore(t))
	for range 2 {
		if err := sequences.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []*polyflake.Sequences[string]{sequences, {}} {
		_, one := s.NextID("alice")
		_, two := s.TryNextID("alice")
		_, three := s.NextIDs([]string{"alice"})
		_, four := s.NextIDs(nil)
		_, five := s.Stats()
		for n, err := range []error{one, two, three, four, five} {
			if !errors.Is(err, polyflake.ErrClosed) {
				t.Error(n, err)
			}
		}
	}
	if sequences.Name() != "closed" {
		t.Error(sequences.Name())
	}
}

func TestSequencesOptions(t *testing.T) {
	address := sequencesStore(t)
	store := polyflake.SequencesStore(address)
	openedSequences[int](t, "ten", address, polyflake.SequencesSections(10))
	openedSequences[int](t, "stored", address, polyflake.SequencesSections(10)).Close()
	for _, c := range []struct {
		want    polyflake.Code
		says    string
		name    string
		options []polyflake.SequencesOption
	}{
		{polyflake.ErrInvalidOption, "sections is 0", "a", []polyflake.SequencesOption{store, polyflake.SequencesSections(0)}},
		{polyflake.ErrInvalidOption, "sections is 16385", "a", []polyflake.SequencesOption{store, polyflake.SequencesSections(16385)}},
		{polyflake.ErrInvalidOption, "step is 0", "a", []polyflake.SequencesOption{store, polyflake.SequencesStep(0)}},
		{polyflake.ErrInvalidOption, "max_keys is 0", "a", []polyflake.SequencesOption{store, polyflake.SequencesMaxKeys(0)}},
		{polyflake.ErrInvalidOption, "max_wait_ms is ", "a", []polyflake.SequencesOption{store, polyflake.SequencesMaxWait(-1)}},
		{polyflake.ErrInvalidOption, "there is no option", "a", []polyflake.SequencesOption{store, polyflake.SequencesSet("start", "7")}},
		{polyflake.ErrInvalidOption, "1000 characters", strings.Repeat("n", 1000), []polyflake.SequencesOption{store}},
		{polyflake.ErrInvalidOption, "0 characters", "", []polyflake.SequencesOption{store}},
		{polyflake.ErrInvalidOption, "control character", "a\x00b", []polyflake.SequencesOption{store}},
		{polyflake.ErrInvalidOption, "UTF-8", "\xff", []polyflake.SequencesOption{store}},
		{polyflake.ErrInvalidOption, "store is missing", "a", nil},
		{polyflake.ErrInvalidOption, "store is given twice", "a", []polyflake.SequencesOption{store, store}},
		{polyflake.ErrInvalidOption, "store: ", "a", []polyflake.SequencesOption{polyflake.SequencesStore("gopher://host")}},
		{polyflake.ErrInvalidOption, "step=20", "ten", []polyflake.SequencesOption{
			store, polyflake.SequencesSections(10), polyflake.SequencesStep(20),
		}},
		{polyflake.ErrInvalidOption, "11", "stored", []polyflake.SequencesOption{store, polyflake.SequencesSections(11)}},
		{polyflake.ErrLeaseUnavailable, "127.0.0.1:1", "a", []polyflake.SequencesOption{
			polyflake.SequencesStore("redis://u:geheim@127.0.0.1:1/0?ttl=3s&wait=0s"),
		}},
	} {
		_, err := polyflake.OpenSequences[string](c.name, c.options...)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%v, not %v with %s", err, c.want, c.says)
		}
	}
}

func TestSequencesAreOneProcesses(t *testing.T) {
	address := sequencesStore(t) + "?wait=1s&label="
	inbox := openedSequences[string](t, "inbox", address+"first")
	must(inbox.NextID("alice"))
	said := func() string {
		process := exec.Command(must(os.Executable()), "-test.run=^TestSequencesChild$")
		process.Env = append(os.Environ(), "POLYFLAKE_TEST_SEQUENCES="+address+"second")
		return string(must(process.Output()))
	}
	if text := said(); !strings.Contains(text, "lease_unavailable") || !strings.Contains(text, "`first`") {
		t.Error(text)
	}
	if number := must(inbox.NextID("alice")); number != 2 {
		t.Error(number)
	}
	inbox.Close()
	if text := said(); !strings.HasPrefix(text, "said 3\n") {
		t.Error(text)
	}
}

func TestCloseEndsAWaitOfSequences(t *testing.T) {
	address, stop, _ := counterStore(t)
	sequences := openedSequences[string](t, "waits", address+"?init=always", polyflake.SequencesSections(1),
		polyflake.SequencesStep(1), polyflake.SequencesMaxWait(time.Hour))
	must(sequences.NextID("alice"))
	stop()
	waits := must(sequences.Stats()).Waits
	over := make(chan error)
	go func() {
		for {
			if _, err := sequences.NextID("alice"); err != nil {
				over <- err
				return
			}
		}
	}()
	eventually(t, "a wait", func() bool { return must(sequences.Stats()).Waits > waits })
	sequences.Close()
	if err := <-over; !errors.Is(err, polyflake.ErrClosed) {
		t.Error(err)
	}
}

func TestSequencesAllocateNothing(t *testing.T) {
	address := sequencesStore(t)
	texts, integers := openedSequences[string](t, "none", address), openedSequences[int](t, "none", address)
	key := strings.Repeat("k", 100)
	if n := testing.AllocsPerRun(1000, func() { must(texts.NextID(key)) }); n != 0 {
		t.Error("a text:", n)
	}
	if n := testing.AllocsPerRun(1000, func() { must(integers.NextID(1 << 40)) }); n != 0 {
		t.Error("an integer:", n)
	}
}

func BenchmarkSequences(b *testing.B) {
	address := sequencesStore(b)
	texts, integers := openedSequences[string](b, "speed", address, polyflake.SequencesStep(1_000_000_000)),
		openedSequences[int](b, "speed", address, polyflake.SequencesStep(1_000_000_000))
	b.Run("NextID text", func(b *testing.B) {
		for b.Loop() {
			must(texts.NextID("alice"))
		}
	})
	b.Run("NextID int", func(b *testing.B) {
		for b.Loop() {
			must(integers.NextID(5))
		}
	})
	words, fives := make([]string, 1000), make([]int, 1000)
	for n := range words {
		words[n], fives[n] = fmt.Sprint("key", n), n
	}
	b.Run("NextIDs text x1000", func(b *testing.B) {
		for b.Loop() {
			must(texts.NextIDs(words))
		}
	})
	b.Run("NextIDs int x1000", func(b *testing.B) {
		for b.Loop() {
			must(integers.NextIDs(fives))
		}
	})
}
