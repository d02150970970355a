//go:build unix

package polyflake_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

const secret = "secret-of-polyflake"

// server is a server started by coordination/examples/store_server.rs. It exits when this process does, even if this
// process is killed.
type server struct {
	url   string
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// start starts a server of the given kind, or skips the test if a command it needs is not installed.
func start(t *testing.T, kind string, needs ...string) *server {
	t.Helper()
	target, has := os.LookupEnv("CARGO_TARGET_DIR")
	if !has {
		target = "../../target"
	}
	program := filepath.Join(target, "debug", "examples", "store_server")
	for _, command := range append(needs, program) {
		if found, _ := filepath.Glob(command); len(found) > 0 {
			continue
		}
		if _, err := exec.LookPath(command); err != nil {
			t.Skip("no ", command)
		}
	}
	process := exec.Command(program, kind)
	process.Stderr = os.Stderr
	// An interrupt from the keyboard must not stop this program before its server.
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s := &server{stdin: must(process.StdinPipe())}
	s.lines = bufio.NewScanner(must(process.StdoutPipe()))
	must(0, process.Start())
	t.Cleanup(func() {
		s.stdin.Close()
		if err := process.Wait(); err != nil {
			t.Error(err)
		}
	})
	s.url = s.line(t)
	if !strings.Contains(s.url, secret) {
		t.Fatal(s.url)
	}
	return s
}

func (s *server) line(t *testing.T) string {
	t.Helper()
	if !s.lines.Scan() {
		t.Fatal("it says why on stderr: ", s.lines.Err())
	}
	return s.lines.Text()
}

func (s *server) tell(t *testing.T, word string) {
	t.Helper()
	fmt.Fprintln(s.stdin, word)
	if answer := s.line(t); answer != word {
		t.Fatal(answer)
	}
}

func (s *server) address(parameters string) string {
	return s.url + "?init=always&" + parameters
}

func TestLeaseStores(t *testing.T) {
	for kind, needs := range map[string][]string{
		"redis": {"redis-server", "redis-cli"},
		// Debian installs PostgreSQL in a separate folder for each version.
		"postgres": {"/usr/lib/postgresql/*/bin/postgres"},
		"mariadb":  {"mariadbd", "openssl"},
		"etcd":     {"etcd", "etcdctl", "curl"},
	} {
		t.Run(kind, func(t *testing.T) {
			s := start(t, kind, needs...)
			t.Run("two processes have two nodes", func(t *testing.T) { twoProcesses(t, s) })
			t.Run("close frees the only node", func(t *testing.T) { onlyNode(t, s) })
			t.Run("a wrong password", func(t *testing.T) { wrongPassword(t, s) })
			t.Run("it is killed and comes back", func(t *testing.T) { killed(t, s) })
		})
	}
}

func twoProcesses(t *testing.T, s *server) {
	address := s.address("namespace=two&nodes=770-771&ttl=10m&wait=20s")
	seen, nodes := map[string]bool{}, map[string]bool{}
	var children []*child
	for range 2 {
		c, node := other(t, address)
		c.line("taken")
		children, nodes[node] = append(children, c), true
	}
	if !nodes["770"] || !nodes["771"] {
		t.Error(nodes)
	}
	if _, err := polyflake.New(polyflake.Lease(strings.Replace(address, "wait=20s", "wait=0s", 1))); !errors.Is(err, polyflake.ErrLeaseUnavailable) {
		t.Error(err)
	}
	for _, c := range children {
		for _, id := range c.rest() {
			if seen[id] {
				t.Fatalf("%s is repeated", id)
			}
			seen[id] = true
		}
	}
	if len(seen) < 2*8 {
		t.Errorf("%d IDs", len(seen))
	}
}

// rest makes the process exit, and returns the IDs that it prints.
func (c *child) rest() (ids []string) {
	fmt.Fprintln(c.stdin)
	for c.lines.Scan() {
		if id, is := strings.CutPrefix(c.lines.Text(), "id "); is {
			ids = append(ids, id)
		}
	}
	return ids
}

func onlyNode(t *testing.T, s *server) {
	address := s.address("namespace=only&nodes=0-0&ttl=10m&wait=20s")
	var last polyflake.ID
	for range 2 {
		c, node := other(t, address)
		if node != "0" {
			t.Fatal(node)
		}
		c.line("taken")
		before := last
		for _, text := range c.rest() {
			id := must(polyflake.ParseID(text, polyflake.Decimal))
			if id <= before {
				t.Fatalf("%d after %d", id, before)
			}
			last = max(last, id)
		}
	}
}

var refused = regexp.MustCompile(`127\.0\.0\.1.*([Aa]uthentication failed|Access denied)`)

func wrongPassword(t *testing.T, s *server) {
	_, err := polyflake.New(polyflake.Lease(strings.Replace(s.address("wait=1m"), secret, "hunter2", 1)))
	if !errors.Is(err, polyflake.ErrLeaseUnavailable) {
		t.Fatal(err)
	}
	if text := err.Error(); strings.Contains(text, "hunter2") || !refused.MatchString(text) {
		t.Error(text)
	}
}

func killed(t *testing.T, s *server) {
	ids := leased(t, s.address("namespace=killed&nodes=772-779&ttl=3s&wait=2m"), polyflake.MaxWait(0))
	seen := map[polyflake.ID]bool{}
	take := func() error {
		id, err := ids.NextID()
		if err == nil && seen[id] {
			t.Fatalf("%d is repeated", id)
		}
		if err == nil {
			seen[id] = true
		}
		return err
	}
	eventually(t, "an ID", func() bool { return take() == nil })
	s.tell(t, "kill")
	var bound time.Time
	var err error
	eventually(t, "a lost lease", func() bool {
		if info, ok := ids.Lease(); ok && info.Bound.After(bound) {
			bound = info.Bound
		}
		err = take()
		return errors.Is(err, polyflake.ErrLeaseLost)
	})
	if strings.Contains(err.Error(), secret) {
		t.Error(err)
	}
	// IDs were issued up to the bound, and not past it.
	if now := time.Now(); now.Before(bound.Add(-100 * time.Millisecond)) {
		t.Errorf("lost at %v, and the bound is %v", now, bound)
	}
	for id := range seen {
		if at := must(ids.Decode(id)).TimestampMs; int64(at) >= bound.UnixMilli() {
			t.Errorf("issued at %d, and the bound is %v", at, bound)
		}
	}
	s.tell(t, "start")
	eventually(t, "an ID again", func() bool { return take() == nil })
	for range 1000 {
		err := take()
		if err != nil && !errors.Is(err, polyflake.ErrSequenceExhausted) && !errors.Is(err, polyflake.ErrLeaseLost) {
			t.Fatal(err)
		}
	}
	if losses := must(ids.Stats()).LeaseLosses; losses < 1 {
		t.Errorf("%d losses", losses)
	}
}
