//go:build unix

package polyflake_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

// store returns the address of a new SQLite file.
func store(t *testing.T, parameters string) string {
	t.Helper()
	return "sqlite://" + filepath.Join(t.TempDir(), "leases.db") + "?" + parameters
}

func leased(t *testing.T, address string, options ...polyflake.Option) *polyflake.Snowflake {
	t.Helper()
	ids, err := polyflake.New(append(options, polyflake.Lease(address))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ids.Close() })
	return ids
}

// eventually waits until a condition holds, and fails the test if it never does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 6000 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func nodeIn(t *testing.T, ids *polyflake.Snowflake, id polyflake.ID) uint64 {
	t.Helper()
	return must(ids.Decode(id)).Node
}

// No other test uses the nodes in this file, because a node that was leased cannot be used without a lease.

// TestLeaseChild is not a test on its own: other tests run it in a child process. It prints its node or its error,
// takes IDs until it reads a line, and then prints all of them. It also prints a line once it has taken the first IDs,
// and when the node first changes.
func TestLeaseChild(t *testing.T) {
	address, isChild := os.LookupEnv("POLYFLAKE_TEST_LEASE")
	if !isChild {
		return
	}
	ids, err := polyflake.New(polyflake.Lease(address), polyflake.MaxWait(time.Minute))
	if err != nil {
		fmt.Println("said", err)
		return
	}
	node, hasChanged := ids.Node(), false
	fmt.Println("said", node)
	over := make(chan struct{})
	go func() {
		fmt.Scanln()
		close(over)
	}()
	var group sync.WaitGroup
	taken := make([][]polyflake.ID, 4)
	for n := range taken {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				select {
				case <-over:
					return
				default:
				}
				// Several IDs in one tick are taken in Go.
				for range 8 {
					taken[n] = append(taken[n], must(ids.NextID()))
				}
				last := nodeIn(t, ids, taken[n][len(taken[n])-1])
				if n == 0 && !hasChanged && last != node {
					hasChanged = true
					fmt.Println("changed")
				}
				if n == 0 && len(taken[n]) == 8 {
					fmt.Println("taken")
				}
				time.Sleep(time.Millisecond)
			}
		}()
	}
	group.Wait()
	for _, all := range taken {
		for _, id := range all {
			fmt.Println("id", uint64(id))
		}
	}
	fmt.Println("losses", must(ids.Stats()).LeaseLosses)
	ids.Close()
}

type child struct {
	process *exec.Cmd
	stdin   io.Writer
	lines   *bufio.Scanner
}

// other starts another process with a lease, and returns the node or the error that it printed.
func other(t *testing.T, address string) (*child, string) {
	t.Helper()
	process := exec.Command(must(os.Executable()), "-test.run=^TestLeaseChild$")
	process.Env = append(os.Environ(), "POLYFLAKE_TEST_LEASE="+address)
	c := &child{process: process, stdin: must(process.StdinPipe())}
	c.lines = bufio.NewScanner(must(process.StdoutPipe()))
	must(0, process.Start())
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
	})
	return c, c.line("said ")
}

func (c *child) line(prefix string) string {
	for c.lines.Scan() {
		if text, has := strings.CutPrefix(c.lines.Text(), prefix); has {
			return text
		}
	}
	return ""
}

func TestLease(t *testing.T) {
	address := store(t, "nodes=740-740")
	one, two := leased(t, address), leased(t, address)
	const goroutines, each = 32, 500
	var group sync.WaitGroup
	taken := make([][]polyflake.ID, goroutines)
	for n := range taken {
		group.Add(1)
		go func() {
			defer group.Done()
			for range each {
				taken[n] = append(taken[n], must([]*polyflake.Snowflake{one, two}[n%2].NextID()))
			}
		}()
	}
	group.Wait()
	seen := map[polyflake.ID]bool{}
	for _, ids := range taken {
		for _, id := range ids {
			if seen[id] || nodeIn(t, one, id) != 740 {
				t.Fatalf("%d is repeated, or of another node", id)
			}
			seen[id] = true
		}
	}

	info, ok := one.Lease()
	if !ok || info.Node != 740 || info.State != "held" || one.Node() != 740 ||
		info.Left <= 0 || info.Left > 31*time.Second || time.Until(info.Bound) > 31*time.Second ||
		!strings.HasPrefix(info.Store, "sqlite:///") || !strings.HasSuffix(info.Store, "/leases.db") {
		t.Errorf("%+v %v", info, ok)
	}
	if losses := must(one.Stats()).LeaseLosses; losses != 0 {
		t.Errorf("%d losses", losses)
	}
	if info, ok := must(polyflake.New(polyflake.Node(746))).Lease(); ok {
		t.Errorf("a lease without one: %+v", info)
	}
	one.Close()
	if info, ok := one.Lease(); ok || one.Node() != 740 {
		t.Errorf("a lease after Close: %+v, node %d", info, one.Node())
	}
	must(two.NextID())
}

func TestLeaseIsFreeAfterClose(t *testing.T) {
	address := store(t, "nodes=741-741&label=somebody&wait=")
	ids := leased(t, address+"1s")
	if _, said := other(t, address+"0s"); !strings.Contains(said, "lease_unavailable: no node is free: all 1 ") ||
		!strings.Contains(said, "node 741, held by `somebody`, becomes free first, in ") {
		t.Errorf("said %s", said)
	}
	ids.Close()
	if _, err := ids.NextID(); !errors.Is(err, polyflake.ErrClosed) {
		t.Error(err)
	}
	if _, said := other(t, address+"1s"); said != "741" {
		t.Errorf("said %s", said)
	}
	_, err := polyflake.New(polyflake.Set("lease", address+"0s"))
	if !errors.Is(err, polyflake.ErrLeaseUnavailable) {
		t.Error(err)
	}
}

func TestLeaseOptions(t *testing.T) {
	now := func() (time.Time, error) { return time.Now(), nil }
	for _, c := range []struct {
		want    polyflake.Code
		options []polyflake.Option
	}{
		{polyflake.ErrInvalidOption, []polyflake.Option{polyflake.Lease("")}},
		{polyflake.ErrInvalidOption, []polyflake.Option{polyflake.Lease("gopher://host")}},
		{polyflake.ErrInvalidOption, []polyflake.Option{polyflake.Lease(store(t, "")), polyflake.Clock(now)}},
		{polyflake.ErrInvalidOption, []polyflake.Option{polyflake.Lease(store(t, "")), polyflake.State("/tmp/never")}},
		{polyflake.ErrInvalidNode, []polyflake.Option{polyflake.Lease(store(t, "")), polyflake.Node(1024)}},
		{polyflake.ErrLeaseUnavailable, []polyflake.Option{polyflake.Lease("redis://u:geheim@127.0.0.1:1/0?wait=0s")}},
	} {
		_, err := polyflake.New(c.options...)
		if !errors.Is(err, c.want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%v, not %v", err, c.want)
		}
	}
	ids := leased(t, store(t, ""), polyflake.NodeFields(map[string]uint64{"datacenter": 24}))
	if ids.Node()>>5 != 24 {
		t.Errorf("node %d", ids.Node())
	}
}

// A process that was stopped for longer than its lease continues with another node. IDs are taken in Go too, and each
// has the node that was held when it was issued.
func TestLeaseChangesItsNode(t *testing.T) {
	address := store(t, "ttl=3s&wait=2m&nodes=750-751")
	stopped, said := other(t, address)
	if said != "750" && said != "751" {
		t.Fatalf("said %s", said)
	}
	node := must(strconv.ParseUint(said, 10, 64))
	stopped.line("taken")
	must(0, stopped.process.Process.Signal(syscall.SIGSTOP))
	// Gets the node once the other process's lease has expired.
	ids := leased(t, address, polyflake.Node(node), polyflake.MaxWait(time.Minute))
	seen := map[polyflake.ID]bool{}
	for range 1000 {
		seen[must(ids.NextID())] = true
	}
	must(0, stopped.process.Process.Signal(syscall.SIGCONT))
	stopped.line("changed")
	for range 1000 {
		seen[must(ids.NextID())] = true
	}
	fmt.Fprintln(stopped.stdin)
	var before, after int
	firstMs := must(ids.Decode(minOf(seen))).TimestampMs
	for stopped.lines.Scan() {
		if text, is := strings.CutPrefix(stopped.lines.Text(), "losses "); is {
			// More than one if the process itself stood still for a TTL.
			if text == "0" {
				t.Error("no loss")
			}
			break
		}
		text, _ := strings.CutPrefix(stopped.lines.Text(), "id ")
		id := must(polyflake.ParseID(text, polyflake.Decimal))
		decoded := must(ids.Decode(id))
		switch {
		case seen[id]:
			t.Fatalf("%d is repeated", id)
		case decoded.Node == node && decoded.TimestampMs < firstMs:
			before++
		case decoded.Node == 1501-node && decoded.TimestampMs > firstMs:
			after++
		default:
			t.Fatalf("node %d at %d; the successor began at %d", decoded.Node, decoded.TimestampMs, firstMs)
		}
		seen[id] = true
	}
	if before == 0 || after == 0 {
		t.Errorf("%d IDs before, %d after", before, after)
	}
}

func minOf(ids map[polyflake.ID]bool) (least polyflake.ID) {
	least = 1<<64 - 1
	for id := range ids {
		least = min(least, id)
	}
	return least
}

// redis starts a server, and returns its port.
func redis(t *testing.T) (*os.Process, string) {
	t.Helper()
	command, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("needs redis-server")
	}
	port := freePort()
	var output bytes.Buffer
	process := exec.Command(command, "--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(),
		"--save", "", "--appendonly", "yes", "--daemonize", "no")
	process.Stdout, process.Stderr = &output, &output
	must(0, process.Start())
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
	})
	eventually(t, "redis-server", func() bool {
		connection, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
	return process.Process, port
}

func TestLeaseInRedis(t *testing.T) {
	server, port := redis(t)
	address := fmt.Sprintf("redis://127.0.0.1:%s/0?ttl=3s&wait=2m&init=always&nodes=752-759", port)
	ids := leased(t, address, polyflake.MaxWait(0))
	eventually(t, "an ID", func() bool { _, err := ids.NextID(); return err == nil })
	info, _ := ids.Lease()
	if info.Store != fmt.Sprintf("redis://127.0.0.1:%s/0", port) {
		t.Errorf("%+v", info)
	}

	must(0, server.Signal(syscall.SIGSTOP))
	var lost *polyflake.Error
	eventually(t, "a lost lease", func() bool {
		_, err := ids.NextID()
		return errors.Is(err, polyflake.ErrLeaseLost) && errors.As(err, &lost)
	})
	if lost.Name != "lease_lost" || lost.RetryAfter() > 10*time.Second || !strings.Contains(lost.Message, info.Store) {
		t.Errorf("%+v", lost)
	}
	if info, ok := ids.Lease(); !ok || info.State != "lost" || info.Left != 0 {
		t.Errorf("%+v %v", info, ok)
	}
	must(0, server.Signal(syscall.SIGCONT))
	eventually(t, "an ID again", func() bool { _, err := ids.NextID(); return err == nil })
	// More than one if the process itself stood still for a TTL.
	if losses := must(ids.Stats()).LeaseLosses; losses < 1 {
		t.Errorf("%d losses", losses)
	}
}

type buffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

func (b *buffer) text() string {
	b.Lock()
	defer b.Unlock()
	return b.String()
}

// linesOf returns the lines logged for one store. The whole process shares the log, and Snowflakes from earlier tests
// may still be closing.
func (b *buffer) linesOf(store string) (lines []string) {
	for line := range strings.Lines(b.text()) {
		if strings.Contains(line, "store="+store+" ") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestLeasesAreLogged(t *testing.T) {
	var written buffer
	polyflake.LogLeases(slog.New(slog.NewTextHandler(&written, nil)))
	defer polyflake.LogLeases(nil)
	address := store(t, "nodes=745-745")
	store, _, _ := strings.Cut(address, "?")
	leased(t, address).Close()
	eventually(t, "both lines", func() bool { return len(written.linesOf(store)) >= 2 })
	lines := written.linesOf(store)
	for n, want := range []string{"kind=acquired", "kind=released"} {
		for _, want := range []string{want, "level=INFO", "node=745", "polyflake: node 745 is "} {
			if !strings.Contains(lines[n], want) {
				t.Errorf("%s is not in %s", want, lines[n])
			}
		}
	}
	polyflake.LogLeases(nil)
	leased(t, address).Close()
	if lines := written.linesOf(store); len(lines) != 2 {
		t.Error(lines)
	}
}
