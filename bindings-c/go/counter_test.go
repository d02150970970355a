//go:build unix

package polyflake_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

// counterStore starts a Redis that can be stopped and started again, and returns its address.
func counterStore(t *testing.T) (address string, stop, start func()) {
	t.Helper()
	command, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("needs redis-server")
	}
	port := freePort()
	where := "127.0.0.1:" + port
	folder := t.TempDir()
	var process *exec.Cmd
	stop = func() {
		if process != nil {
			process.Process.Kill()
			process.Wait()
			process = nil
		}
	}
	start = func() {
		// By default, an acknowledged write may not be in the file yet when the server is killed.
		process = exec.Command(command, "--port", port, "--bind", "127.0.0.1", "--dir", folder, "--save", "",
			"--appendonly", "yes", "--appendfsync", "always", "--daemonize", "no")
		must(0, process.Start())
		eventually(t, "redis-server", func() bool {
			connection, err := net.Dial("tcp", where)
			if err == nil {
				connection.Close()
			}
			return err == nil
		})
	}
	start()
	t.Cleanup(func() { stop() })
	return "redis://" + where + "/0", stop, start
}

// freePort returns a free port below the range for outgoing connections, so it is still free when a server restarts.
func freePort() string {
	for {
		port := fmt.Sprint(30_000 + rand.IntN(2_768))
		if listener, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			listener.Close()
			return port
		}
	}
}

// opened opens a counter. On a busy machine, a store may take seconds to answer, so its calls wait for a minute unless
// a test says otherwise.
func opened(t *testing.T, name, address string, options ...polyflake.CounterOption) *polyflake.Counter {
	t.Helper()
	counter, err := polyflake.OpenCounter(name, append(
		[]polyflake.CounterOption{polyflake.CounterMaxWait(time.Minute), polyflake.CounterStore(address)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { counter.Close() })
	return counter
}

// TestCounterChild is not a test on its own: another test runs it in a child process, which closes nothing.
func TestCounterChild(t *testing.T) {
	if address, isChild := os.LookupEnv("POLYFLAKE_TEST_COUNTER"); isChild {
		counter := must(polyflake.OpenCounter("orders", polyflake.CounterStore(address)))
		fmt.Println("said", must(counter.NextID()))
	}
}

func TestCounter(t *testing.T) {
	address, _, _ := counterStore(t)
	orders := opened(t, "orders", address)
	var taken []polyflake.ID
	for range 3 {
		taken = append(taken, must(orders.NextID()))
	}
	taken = append(taken, must(orders.TryNextID()))
	same := opened(t, "orders", address)
	taken = append(taken, must(same.NextID()))
	same.Close()
	taken = append(taken, must(orders.NextIDs(3))...)
	if !slices.Equal(taken, []polyflake.ID{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Error(taken)
	}
	filled := make([]polyflake.ID, 500)
	if err := orders.Fill(filled); err != nil || filled[0] != 9 || filled[499] != 508 {
		t.Error(err, filled[0], filled[499])
	}
	if err := orders.Fill(nil); err != nil {
		t.Error(err)
	}
	block := must(orders.NextBlock(2000))
	after := must(orders.NextID())
	if block <= 508 || after <= 508 || after >= block && after < block+2000 {
		t.Error(block, after)
	}
	for number, err := range orders.All() {
		if err != nil || number <= after {
			t.Error(number, err)
		}
		break
	}
	stats := must(orders.Stats())
	if stats.InHand == 0 || stats.Step < 100 || stats.Segments < 2 || orders.Name() != "orders" {
		t.Errorf("%+v %q", stats, orders.Name())
	}
	for _, n := range []int{0, -1, polyflake.MaxBatch + 1} {
		if _, err := orders.NextIDs(n); !errors.Is(err, polyflake.ErrInvalidOption) {
			t.Error(n, err)
		}
		if _, err := orders.NextBlock(n); !errors.Is(err, polyflake.ErrInvalidOption) {
			t.Error(n, err)
		}
	}

	process := exec.Command(must(os.Executable()), "-test.run=^TestCounterChild$")
	process.Env = append(os.Environ(), "POLYFLAKE_TEST_COUNTER="+address)
	var number polyflake.ID
	said := string(must(process.Output()))
	if _, err := fmt.Sscanf(said, "said %d", (*uint64)(&number)); err != nil || number <= block {
		t.Error(said, err)
	}
	if next := must(orders.NextID()); next == number {
		t.Error("repeated", next)
	}
}

func TestCounterGoesOnAfterClose(t *testing.T) {
	address, _, _ := counterStore(t)
	var last polyflake.ID
	for range 5 {
		counter := opened(t, "reopened", address, polyflake.CounterStep(50))
		// Only the unused part of the last segment is returned, and another may have been fetched before it.
		if number := must(counter.NextID()); number <= last || number > last+50 {
			t.Error(number, last)
		}
		last = must(counter.NextID())
		counter.Close()
	}
	if number := must(opened(t, "invoices", address, polyflake.CounterStart(1000)).NextID()); number != 1000 {
		t.Error(number)
	}
}

func TestCounterGoroutines(t *testing.T) {
	address, _, _ := counterStore(t)
	one, two := opened(t, "many", address), opened(t, "many", address)
	const goroutines, each = 32, 500
	var group sync.WaitGroup
	taken := make([][]polyflake.ID, goroutines)
	for n := range taken {
		group.Add(1)
		go func() {
			defer group.Done()
			for range each {
				taken[n] = append(taken[n], must([]*polyflake.Counter{one, two}[n%2].NextID()))
			}
		}()
	}
	group.Wait()
	seen := map[polyflake.ID]bool{}
	for _, numbers := range taken {
		if !slices.IsSorted(numbers) {
			t.Error("not increasing")
		}
		for _, number := range numbers {
			if seen[number] {
				t.Fatalf("%d is repeated", number)
			}
			seen[number] = true
		}
	}
}

func TestCounterOneByOne(t *testing.T) {
	address, _, _ := counterStore(t)
	counter := opened(t, "one", address, polyflake.CounterStep(1))
	for want := polyflake.ID(1); want <= 20; want++ {
		if number, highest := must(counter.NextID()), must(counter.Peek()); number != want || highest != want {
			t.Error(number, highest, want)
		}
	}
	if _, err := counter.TryNextID(); !errors.Is(err, polyflake.ErrCounterUnavailable) {
		t.Error(err)
	}
}

func TestCounterOnTheStore(t *testing.T) {
	address, _, _ := counterStore(t)
	counter := opened(t, "mended", address, polyflake.CounterStep(10))
	must(counter.NextID())
	if err := counter.Raise(5000); err != nil {
		t.Error(err)
	}
	if number, highest := must(counter.NextID()), must(counter.Peek()); number <= 5000 || highest < number {
		t.Error(number, highest)
	}
	for _, number := range []polyflake.ID{0, 1 << 63} {
		if err := counter.Raise(number); !errors.Is(err, polyflake.ErrInvalidOption) {
			t.Error(err)
		}
	}
	if !must(counter.Remove()) {
		t.Error("there was none")
	}
	if _, err := counter.NextID(); !errors.Is(err, polyflake.ErrCounterUnavailable) {
		t.Error(err)
	}
	counter.Close()
	if number := must(opened(t, "mended", address).NextID()); number != 1 {
		t.Error(number)
	}
}

func TestCounterIsClosed(t *testing.T) {
	address, _, _ := counterStore(t)
	counter := opened(t, "closed", address)
	for range 2 {
		if err := counter.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []*polyflake.Counter{counter, {}} {
		_, one := c.NextID()
		_, two := c.TryNextID()
		_, three := c.NextIDs(1)
		_, four := c.NextBlock(1)
		_, five := c.Peek()
		_, six := c.Remove()
		_, seven := c.Stats()
		for n, err := range []error{one, two, three, four, five, six, seven, c.Raise(1), c.Fill(make([]polyflake.ID, 1))} {
			if !errors.Is(err, polyflake.ErrClosed) {
				t.Error(n, err)
			}
		}
	}
	if counter.Name() != "closed" {
		t.Error(counter.Name())
	}
}

func TestCounterOptions(t *testing.T) {
	address, _, _ := counterStore(t)
	store := polyflake.CounterStore(address)
	opened(t, "stepped", address, polyflake.CounterStep(10))
	for _, c := range []struct {
		want    polyflake.Code
		says    string
		name    string
		options []polyflake.CounterOption
	}{
		{polyflake.ErrInvalidOption, "step is 0", "a", []polyflake.CounterOption{store, polyflake.CounterStep(0)}},
		{polyflake.ErrInvalidOption, "step is 1099511627776", "a", []polyflake.CounterOption{store, polyflake.CounterStep(1 << 40)}},
		{polyflake.ErrInvalidOption, "start is 0", "a", []polyflake.CounterOption{store, polyflake.CounterStart(0)}},
		{polyflake.ErrInvalidOption, "max_wait_ms is ", "a", []polyflake.CounterOption{store, polyflake.CounterMaxWait(-1)}},
		{polyflake.ErrInvalidOption, "there is no option", "a", []polyflake.CounterOption{store, polyflake.CounterSet("node", "7")}},
		{polyflake.ErrInvalidOption, "1000 characters", strings.Repeat("n", 1000), []polyflake.CounterOption{store}},
		{polyflake.ErrInvalidOption, "0 characters", "", []polyflake.CounterOption{store}},
		{polyflake.ErrInvalidOption, "control character", "a\x00b", []polyflake.CounterOption{store}},
		{polyflake.ErrInvalidOption, "UTF-8", "\xff", []polyflake.CounterOption{store}},
		{polyflake.ErrInvalidOption, "store is missing", "a", nil},
		{polyflake.ErrInvalidOption, "store: ", "a", []polyflake.CounterOption{polyflake.CounterStore("gopher://host")}},
		{polyflake.ErrInvalidOption, "step=10", "stepped", []polyflake.CounterOption{store, polyflake.CounterStep(20)}},
		{polyflake.ErrCounterUnavailable, "127.0.0.1:1", "a", []polyflake.CounterOption{
			polyflake.CounterStore("redis://u:geheim@127.0.0.1:1/0"), polyflake.CounterMaxWait(100 * time.Millisecond),
		}},
	} {
		_, err := polyflake.OpenCounter(c.name, c.options...)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%v, not %v with %s", err, c.want, c.says)
		}
	}
}

func TestCounterInTwoStores(t *testing.T) {
	address, _, _ := counterStore(t)
	other, stop, _ := counterStore(t)
	counter := must(polyflake.OpenCounter("two", polyflake.CounterStore(address, other), polyflake.CounterStep(1)))
	defer counter.Close()
	seen := map[polyflake.ID]bool{}
	for n := range 40 {
		if n == 20 {
			stop()
		}
		number := must(counter.NextID())
		if seen[number] {
			t.Fatalf("%d is repeated", number)
		}
		seen[number] = true
	}
	if _, err := counter.NextBlock(5); !errors.Is(err, polyflake.ErrInvalidOption) {
		t.Error(err)
	}
}

func TestCounterStoreDown(t *testing.T) {
	var written buffer
	polyflake.LogLeases(slog.New(slog.NewTextHandler(&written, nil)))
	defer polyflake.LogLeases(nil)
	address, stop, start := counterStore(t)
	kept := opened(t, "kept", address, polyflake.CounterStep(1000))
	patient := opened(t, "down", address, polyflake.CounterStep(1))
	last := must(patient.NextID())
	// Opens at once, because the other one is open.
	counter := opened(t, "down", address, polyflake.CounterStep(1), polyflake.CounterMaxWait(200*time.Millisecond))
	stop()
	for want := polyflake.ID(1); want <= 100; want++ {
		if number := must(kept.NextID()); number != want {
			t.Error(number, want)
		}
	}
	if _, err := counter.NextID(); !errors.Is(err, polyflake.ErrCounterUnavailable) {
		t.Error(err)
	}
	start()
	var number polyflake.ID
	eventually(t, "a number again", func() (is bool) {
		var err error
		number, err = counter.NextID()
		return err == nil
	})
	if number <= last {
		t.Error(number, last)
	}
	eventually(t, "both lines", func() bool { return strings.Contains(written.text(), "kind=store_reachable") })
	text := written.text()
	if !strings.Contains(text, "level=WARN") || !strings.Contains(text, "kind=store_unreachable") || strings.Contains(text, "node=") {
		t.Error(text)
	}
}

func TestCloseEndsAWaitForTheStore(t *testing.T) {
	address, stop, _ := counterStore(t)
	counter := opened(t, "waits", address, polyflake.CounterStep(1), polyflake.CounterMaxWait(time.Hour))
	stop()
	over := make(chan error)
	go func() {
		_, err := counter.NextID()
		over <- err
	}()
	eventually(t, "a wait", func() bool { return must(counter.Stats()).Waits > 0 })
	counter.Close()
	if err := <-over; !errors.Is(err, polyflake.ErrClosed) {
		t.Error(err)
	}
}

// ownIDs is a custom generator.
type ownIDs struct{ last polyflake.ID }

func (f *ownIDs) NextID() (polyflake.ID, error) {
	f.last++
	return f.last, nil
}

func (f *ownIDs) NextIDs(n int) (ids []polyflake.ID, err error) {
	for range n {
		f.last++
		ids = append(ids, f.last)
	}
	return ids, nil
}

func TestIDGenerator(t *testing.T) {
	address, _, _ := counterStore(t)
	for _, ids := range []polyflake.IDGenerator{
		must(polyflake.New(polyflake.Node(747))), opened(t, "generator", address), &ownIDs{},
	} {
		first, more := must(ids.NextID()), must(ids.NextIDs(3))
		if len(more) != 3 || more[0] <= first || !slices.IsSorted(more) {
			t.Error(first, more)
		}
	}
}
