package polyflake_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

const children, childIDs = 2, 20_000

// TestStateChild is not a test on its own: other tests run it in a child process.
func TestStateChild(t *testing.T) {
	path, isChild := os.LookupEnv("POLYFLAKE_TEST_STATE")
	if !isChild {
		return
	}
	ids := must(polyflake.New(polyflake.Node(600), polyflake.State(path), polyflake.MaxWait(time.Minute)))
	fmt.Println("ready")
	fmt.Scanln() // until all processes are ready
	for range childIDs / 2 {
		fmt.Println("id", uint64(must(ids.NextID())))
	}
	for _, id := range must(ids.NextIDs(childIDs / 2)) {
		fmt.Println("id", uint64(id))
	}
}

// issue runs several processes that share a node concurrently, and returns all their IDs.
func issue(t *testing.T, path string) (all []polyflake.ID) {
	t.Helper()
	type child struct {
		process *exec.Cmd
		errors  strings.Builder
		start   func() error
		lines   func() ([]polyflake.ID, error)
	}
	var started []*child
	for range children {
		c := &child{process: exec.Command(must(os.Executable()), "-test.run=^TestStateChild$")}
		c.process.Env = append(os.Environ(), "POLYFLAKE_TEST_STATE="+path)
		c.process.Stderr = &c.errors
		stdin := must(c.process.StdinPipe())
		stdout := must(c.process.StdoutPipe())
		c.start = func() error {
			_, err := fmt.Fprintln(stdin)
			return err
		}
		scanner := bufio.NewScanner(stdout)
		c.lines = func() (ids []polyflake.ID, err error) {
			for scanner.Scan() {
				if text, isID := strings.CutPrefix(scanner.Text(), "id "); isID {
					ids = append(ids, must(polyflake.ParseID(text, polyflake.Decimal)))
				}
			}
			return ids, c.process.Wait()
		}
		must(0, c.process.Start())
		if !scanner.Scan() || scanner.Text() != "ready" {
			c.process.Wait()
			t.Fatalf("got %s%s", scanner.Text(), c.errors.String())
		}
		started = append(started, c)
	}
	var group sync.WaitGroup
	results := make([][]polyflake.ID, children)
	for n, c := range started {
		must(0, c.start())
		group.Add(1)
		go func() {
			defer group.Done()
			var err error
			if results[n], err = c.lines(); err != nil {
				t.Errorf("%v: %s", err, c.errors.String())
			}
		}()
	}
	group.Wait()
	for _, ids := range results {
		equal(t, "the number of a process's IDs", len(ids), childIDs)
		if !slices.IsSorted(ids) {
			t.Error("the IDs of a process do not increase")
		}
		all = append(all, ids...)
	}
	return all
}

func TestProcessesShareANode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	first := issue(t, path)
	second := issue(t, path)
	if slices.Max(first) >= slices.Min(second) {
		t.Error("the IDs after a restart are not greater than those before")
	}
	all := slices.Concat(first, second)
	slices.Sort(all)
	equal(t, "the number of different IDs", len(slices.Compact(all)), 2*children*childIDs)
}

// A process holds a node's state file until it exits, so a test repeated with -count needs another node.
var nodes atomic.Uint64

func unusedNode() polyflake.Option {
	return polyflake.Node(600 + nodes.Add(1)%400)
}

// at is a clock that always returns the same time.
func at(unixMs int64) polyflake.Option {
	return polyflake.Clock(func() (time.Time, error) { return time.UnixMilli(unixMs), nil })
}

func TestStateContinuesWithACustomClock(t *testing.T) {
	node := unusedNode()
	path := polyflake.State(filepath.Join(t.TempDir(), "state"))
	// The cursor of a new file starts about a second ahead of the clock.
	must(polyflake.New(node, path, at(1_700_000_000_000)))
	first := must(must(polyflake.New(node, path, at(1_700_000_010_000))).NextID())
	next := must(must(polyflake.New(node, path, at(1_700_000_010_000-500))).NextID())
	equal(t, "the next ID", next, first+1)
}

func TestStateAfterClose(t *testing.T) {
	node := unusedNode()
	path := polyflake.State(filepath.Join(t.TempDir(), "state"))
	ids := must(polyflake.New(node, path))
	other := must(polyflake.New(node, path))
	first := must(ids.NextID())
	must(0, ids.Close())
	_, err := ids.NextID()
	wantError(t, err, "closed")
	second := must(other.NextID())
	must(0, other.Close())
	third := must(must(polyflake.New(node, path)).NextID())
	if first >= second || second >= third {
		t.Errorf("%d, %d and %d do not increase", first, second, third)
	}
}

// wantMessage checks an error's name and part of its message.
func wantMessage(t *testing.T, err error, name, part string) {
	t.Helper()
	wantError(t, err, name)
	if !strings.Contains(err.Error(), part) {
		t.Errorf("got %v, want %s", err, part)
	}
}

func TestStateOfAnotherKeyOrDamaged(t *testing.T) {
	node, another, third, fourth := unusedNode(), unusedNode(), unusedNode(), unusedNode()
	folder := t.TempDir()
	path := filepath.Join(folder, "state")
	must(polyflake.New(node, polyflake.State(path)))
	_, err := polyflake.New(another, polyflake.State(path))
	wantMessage(t, err, "state_file", "another layout or node")
	_, err = polyflake.New(node)
	wantMessage(t, err, "invalid_option", "state file")
	_, err = polyflake.New(node, polyflake.State(filepath.Join(folder, "second")))
	wantMessage(t, err, "invalid_option", "state file")
	must(polyflake.New(third))
	_, err = polyflake.New(third, polyflake.State(filepath.Join(folder, "third")))
	wantMessage(t, err, "invalid_option", "state file")

	content := must(os.ReadFile(path))
	for n := 8; n < 64; n++ {
		content[n] ^= 0xff
	}
	other := filepath.Join(folder, "other")
	for _, content := range [][]byte{content, []byte("precious"), content[:100]} {
		must(0, os.WriteFile(other, content, 0o600))
		_, err = polyflake.New(fourth, polyflake.State(other))
		wantError(t, err, "state_file")
		wantError(t, polyflake.ResetState(other), "state_file")
		equal(t, "the file", string(must(os.ReadFile(other))), string(content))
	}
	_, err = polyflake.New(fourth, polyflake.State(filepath.Join(folder, "missing", "state")))
	wantMessage(t, err, "state_file", "created")
}

func TestStateReplaced(t *testing.T) {
	node := unusedNode()
	path := filepath.Join(t.TempDir(), "state")
	now := time.Now()
	ids := must(polyflake.New(node, polyflake.State(path),
		polyflake.Clock(func() (time.Time, error) { return now, nil })))
	now = now.Add(5 * time.Second) // past where a new file's cursor starts
	must(ids.NextID())
	must(0, os.Rename(path, path+"-old"))
	now = now.Add(5 * time.Second)
	_, err := ids.NextID()
	wantMessage(t, err, "state_file", "replaced")
}

func TestResetState(t *testing.T) {
	node := unusedNode()
	path := filepath.Join(t.TempDir(), "state")
	must(polyflake.New(node, polyflake.State(path), at(3_471_292_800_000)))
	ahead := must(polyflake.New(node, polyflake.State(path), at(3_471_292_810_000))) // past where its cursor starts
	must(ahead.NextID())
	_, err := polyflake.New(node, polyflake.State(path))
	wantMessage(t, err, "state_file", "ahead of the clock")
	must(0, polyflake.ResetState(path))
	_, err = ahead.NextID()
	wantMessage(t, err, "state_file", "replaced")
	must(must(polyflake.New(node, polyflake.State(path))).NextID())
	must(0, polyflake.ResetState(path)) // nothing to reset
	err = polyflake.ResetState(path + "-missing")
	wantMessage(t, err, "state_file", "opened")
	if !errors.Is(err, polyflake.ErrStateFile) {
		t.Errorf("got %v", err)
	}
}

func TestStatePathIsBytes(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"Zähler ␀", "a\xff", "a\uFFFD"} {
		path := filepath.Join(folder, name)
		for _, option := range []polyflake.Option{polyflake.State(path), polyflake.Set("state", path)} {
			must(polyflake.New(unusedNode(), option))
			must(0, polyflake.ResetState(path))
			must(0, os.Remove(path))
		}
	}
	path := filepath.Join(folder, "x") + "a\x00b"
	for _, option := range []polyflake.Option{polyflake.State(path), polyflake.Set("state", path)} {
		_, err := polyflake.New(unusedNode(), option)
		wantMessage(t, err, "state_file", "path")
	}
	wantMessage(t, polyflake.ResetState(path), "state_file", "path")
	equal(t, "the number of files", len(must(os.ReadDir(folder))), 0)
	_, err := polyflake.New(unusedNode(), polyflake.State(""))
	wantError(t, err, "invalid_option")
	wantError(t, polyflake.ResetState(""), "state_file")
}

// With a state file, New reads the clock.
func TestNewReportsTheClocksFailure(t *testing.T) {
	node := unusedNode()
	broken := errors.New("the GPS is out of sight")
	path := polyflake.State(filepath.Join(t.TempDir(), "state"))
	_, err := polyflake.New(node, path,
		polyflake.Clock(func() (time.Time, error) { return time.Time{}, broken }))
	if e := wantError(t, err, "clock_failed"); e.Err != broken {
		t.Errorf("got %v", err)
	}
	value := panicOf(func() {
		polyflake.New(node, path, polyflake.Clock(func() (time.Time, error) { panic(broken) }))
	})
	if value != broken {
		t.Errorf("panicked with %v", value)
	}
	// The next failure does not include that error.
	_, err = polyflake.New(polyflake.Node(1024), fixed())
	if e := wantError(t, err, "invalid_node"); e.Err != nil {
		t.Errorf("got %v", err)
	}
}
