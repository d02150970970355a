// Adapts Polyflake for Go to the duplicate probes.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

const (
	done        = 0
	refused     = 3
	unsupported = 4
)

// probe is the runner's request, with the options for the generator.
type probe struct {
	situation string
	numbers   map[string]int
	options   []polyflake.Option
	// named contains the names of the options that were given.
	named map[string]bool
}

func fromArguments(arguments []string) probe {
	p := probe{numbers: map[string]int{"n": 1, "parts": 1, "behind_ms": 0, "tick_ms": 1, "gate": -1}, named: map[string]bool{}}
	if len(arguments) > 0 {
		p.situation = arguments[0]
		arguments = arguments[1:]
	}
	for _, argument := range arguments {
		name, value, _ := strings.Cut(argument, "=")
		if _, ok := p.numbers[name]; ok {
			number, err := strconv.Atoi(value)
			must(err)
			p.numbers[name] = number
		} else {
			p.options = append(p.options, polyflake.Set(name, value))
			p.named[name] = true
		}
	}
	return p
}

func (p probe) build() (*polyflake.Snowflake, error) {
	layout := map[int]string{1: "twitter", 10: "sonyflake", 1000: "cosid-second"}[p.numbers["tick_ms"]]
	if p.situation == "exhaustion" {
		layout = "yitter" // 64 IDs per tick, so that every language can use them up
	}
	options := []polyflake.Option{
		polyflake.WithLayout(layout),
		polyflake.MaxWait(time.Minute), // on a busy machine, a goroutine may wait a long time for its turn
	}
	if !p.named["lease"] {
		options = append(options, polyflake.Node(7))
	}
	return polyflake.New(append(options, p.options...)...)
}

// part holds the IDs that one goroutine took, and the error that stopped it, if any.
type part struct {
	ids []polyflake.ID
	err error
}

func (t *part) take(ids *polyflake.Snowflake, n int) {
	for range n {
		id, err := ids.NextID()
		if err != nil {
			t.err = err
			return
		}
		t.ids = append(t.ids, id)
	}
}

func (t *part) takeFromNew(p probe, n int) {
	ids, err := p.build()
	if err != nil {
		t.err = err
		return
	}
	t.take(ids, n)
}

func (t *part) finish() int {
	var text []byte
	for _, id := range t.ids {
		text = strconv.AppendUint(text, uint64(id), 10)
		text = append(text, '\n')
	}
	_, err := os.Stdout.Write(text)
	must(err)
	if t.err == nil {
		return done
	}
	name := t.err.Error()
	var failure *polyflake.Error
	if errors.As(t.err, &failure) {
		name = failure.Name
	}
	fmt.Fprintln(os.Stderr, "refused:", name)
	return refused
}

// goroutines runs work in one goroutine per part, and prints the IDs they took.
func (p probe) goroutines(work func(*part)) int {
	parts := make([]part, p.numbers["parts"])
	var running sync.WaitGroup
	for i := range parts {
		running.Add(1)
		go func() {
			defer running.Done()
			work(&parts[i])
		}()
	}
	running.Wait()
	status := done
	for i := range parts {
		status = max(status, parts[i].finish())
	}
	return status
}

// rollback uses libfaketime to step this program's clock through a file. This affects Polyflake, which asks
// the C library for the time, but not Go's time.Now.
func (p probe) rollback(ids *polyflake.Snowflake) int {
	clock := os.Getenv("FAKETIME_TIMESTAMP_FILE")
	if clock == "" {
		return unsupportedFor("needs libfaketime, which steps this program's clock")
	}
	behind := time.Duration(p.numbers["behind_ms"]) * time.Millisecond
	began := time.Now()
	var t part
	t.take(ids, p.numbers["n"]-1)
	// Wait, so that the step goes back to the time of the first IDs.
	time.Sleep(behind - time.Since(began))
	t.take(ids, 1)
	// Do not truncate it: libfaketime ends the program if a thread reads the empty file.
	file, err := os.OpenFile(clock, os.O_WRONLY, 0)
	must(err)
	_, err = fmt.Fprintf(file, "-%f\n", behind.Seconds())
	must(err)
	must(file.Close())
	t.take(ids, p.numbers["n"])
	return t.finish()
}

// restart starts when the previous process is done, as a restarted program would.
func (p probe) restart() int {
	fmt.Println("ready")
	_, err := io.ReadAll(os.Stdin)
	must(err)
	var t part
	t.takeFromNew(p, p.numbers["n"])
	// This starts the next process.
	must(os.NewFile(uintptr(p.numbers["gate"]), "gate").Close())
	return t.finish()
}

// perCall builds a generator for each ID, as a function that handles a single request would.
func (p probe) perCall() int {
	var t part
	for len(t.ids) < p.numbers["n"] && t.err == nil {
		t.takeFromNew(p, 1)
	}
	return t.finish()
}

// fleet is one of several processes that were not given a node. The runner kills it.
func (p probe) fleet() int {
	if !p.named["lease"] && !p.named["node"] && !p.named["state"] {
		return unsupportedFor("processes that have no node of their own need a lease")
	}
	var t part
	t.takeFromNew(p, p.numbers["n"])
	status := t.finish()
	if status == done {
		_, err := io.ReadAll(os.Stdin)
		must(err)
	}
	return status
}

func (p probe) run() int {
	n := p.numbers["n"]
	shared := func(use func(*polyflake.Snowflake) int) int {
		ids, err := p.build()
		if err != nil {
			return (&part{err: err}).finish()
		}
		return use(ids)
	}
	switch p.situation {
	case "threads":
		return shared(func(ids *polyflake.Snowflake) int {
			return p.goroutines(func(t *part) { t.take(ids, n) })
		})
	case "worker-threads":
		return p.goroutines(func(t *part) { t.takeFromNew(p, n) })
	case "rollback":
		return shared(p.rollback)
	case "exhaustion":
		var t part
		t.takeFromNew(p, n)
		return t.finish()
	case "restart":
		return p.restart()
	case "per-call":
		return p.perCall()
	case "fleet":
		return p.fleet()
	case "fork", "fork-new":
		return unsupportedFor("a Go program cannot fork")
	case "prefork", "prefork-one-node":
		return unsupportedFor("a Go server is one process: a Go program cannot fork")
	}
	return unsupportedFor("unknown situation: " + p.situation)
}

func unsupportedFor(why string) int {
	fmt.Fprintln(os.Stderr, why)
	return unsupported
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	os.Exit(fromArguments(os.Args[1:]).run())
}
