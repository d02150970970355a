// The cost of an ID in Go, with other packages and floors, round by round, as JSON Lines (benchmarks/README.md):
//
//	go run . [--rounds 9]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
)

type row struct {
	generator
	table      string
	unit       string
	floor      []string
	targets    []target
	measure    func() float64
	rounds     []float64
	goroutines int // that check for repeats; none for floors
}

// target is what one of our figures must reach; benchmarks/README.md describes the kinds.
type target struct {
	What    string   `json:"what"`
	AtMost  *float64 `json:"at_most,omitempty"`
	AtLeast *float64 `json:"at_least,omitempty"`
}

const (
	perID         = "ns per ID"
	perDecoded    = "ns per decoded ID"
	perCall       = "ns per call"
	processorTime = "CPU seconds per second"
	decode        = "decode"
	inALoop       = ", in a loop"
)

type result struct {
	Kind       string    `json:"kind"`
	Language   string    `json:"language"`
	Table      string    `json:"table"`
	Subject    string    `json:"subject"`
	Version    string    `json:"version"`
	Role       string    `json:"role"`
	Unit       string    `json:"unit"`
	Rounds     []float64 `json:"rounds"`
	Repeated   *int      `json:"repeated"`
	IDs        *int      `json:"ids"`
	AheadMs    *int64    `json:"ahead_ms"`
	ReadsClock bool      `json:"reads_clock"`
	Comparable bool      `json:"comparable"`
	Note       string    `json:"note"`
	Floor      []string  `json:"floor,omitempty"`
	Targets    []target  `json:"targets,omitempty"`
}

func main() {
	rounds := flag.Int("rounds", 9, "how many times each is measured")
	flag.Parse()
	rows := tables()
	for round := range *rounds {
		fmt.Fprintf(os.Stderr, "Go: round %d of %d\n", round+1, *rounds)
		for _, r := range rows {
			r.rounds = append(r.rounds, r.measure())
		}
	}
	fmt.Fprintln(os.Stderr, "Go: checking for repeated IDs")
	// Rows with the same generator and number of goroutines share a check.
	type checked struct {
		name       string
		goroutines int
	}
	checks := map[checked]findings{}
	out := json.NewEncoder(os.Stdout)
	for _, r := range rows {
		line := result{
			Kind: "result", Language: "Go", Table: r.table, Subject: r.name, Version: r.version, Role: r.role, Unit: r.unit,
			Rounds: r.rounds, ReadsClock: r.role != "floor",
			// Generators that make few IDs sleep most of the time. A stored UUID does not turn back into the ID.
			Comparable: (r.unit != processorTime || r.capacity == 4096) && r.name != uuidText,
			Note:       r.note, Floor: r.floor, Targets: r.targets,
		}
		if r.goroutines > 0 {
			key := checked{strings.TrimSuffix(r.name, inALoop), r.goroutines}
			found, known := checks[key]
			if !known {
				found = checkIDs(r.generator, r.goroutines)
				checks[key] = found
			}
			line.Repeated, line.IDs, line.AheadMs = &found.repeated, &found.ids, &found.aheadMs
		}
		if err := out.Encode(line); err != nil {
			panic(err)
		}
	}
}

func atMost(what string, limit float64) target {
	return target{What: what, AtMost: &limit}
}

func tables() []*row {
	var rows []*row
	add := func(table, unit string, g generator, goroutines int, measure func() float64, targets ...target) {
		rows = append(rows, &row{
			generator: g, table: table, unit: unit, goroutines: goroutines, measure: measure, targets: targets,
		})
	}
	floor := func(table, name, note string, burst int, take func([]id)) {
		unit := perID
		if table == decode {
			unit = perDecoded
		}
		g := generator{name: name, role: "floor", note: note, burst: burst, step: 1, take: take, tick: millisecond}
		add(table, unit, g, 0, func() float64 { return timeBursts(g, 1) })
	}
	// over sets the floors of the row that was added last.
	over := func(floors ...string) { rows[len(rows)-1].floor = floors }

	const single, batches, two = "one ID", "batch of 1,000", "two goroutines, one generator"
	const emptyCall, nextIDInC = "empty cgo call", "polyflake_next_id in C"
	const newSlice, counting = "make([]ID, 1000)", "counting into a slice"
	ours := polyflakeSingle()
	add(single, perID, ours, 1, func() float64 { return timeBursts(ours, 1) }, atMost("ratio", 1))
	over(nextIDInC)
	for _, g := range append([]generator{polyflakeGoClock()}, peers()...) {
		add(single, perID, g, 1, func() float64 { return timeBursts(g, 1) })
	}
	floor(single, emptyCall, "from Go to C and back", batch, emptyCalls)
	floor(single, "time.Now().UnixMilli()", "", batch, readClock)
	floor(single, nextIDInC, "the same work without Go", batch, inC("2"))

	for _, g := range polyflakeBatches() {
		add(batches, perID, g, 1, func() float64 { return timeBursts(g, 1) }, atMost("value", 2))
		if g.make != nil {
			over(newSlice)
		} else {
			over(counting)
		}
	}
	for _, g := range peers() {
		g.name += inALoop
		g.note = join(g.note, "no batch call")
		add(batches, perID, g, 1, func() float64 { return timeBursts(g, 1) })
	}
	floor(batches, newSlice, "what NextIDs returns, empty", 20*batch, makeSlices)
	floor(batches, counting, "what Fill writes", 20*batch, countUp)

	for _, g := range decoders() {
		add(decode, perDecoded, g, 0, func() float64 { return timeBursts(g, 1) })
	}

	for _, c := range codecs() {
		var targets []target
		if c.role == "ours" {
			targets = []target{atMost("value", 200)}
		}
		encoder, decoder := c.encoder(), c.decoder()
		add("public ID, encode", perCall, encoder, 0, func() float64 { return timeBursts(encoder, 1) }, targets...)
		add("public ID, decode", perCall, decoder, 0, func() float64 { return timeBursts(decoder, 1) }, targets...)
	}

	for _, g := range append([]generator{ours}, peers()...) {
		add(two, perID, g, 2, func() float64 { return timeBursts(g, 2) })
	}
	for _, g := range append([]generator{ours}, peers()...) {
		add("full load, one goroutine", "% of capacity", g, 1, func() float64 { return fullLoad(g, 1).percent })
		add("full load, two goroutines", "% of capacity", g, 2, func() float64 { return fullLoad(g, 2).percent })
		add("processor time under full load, one goroutine", processorTime, g, 1,
			func() float64 { return fullLoad(g, 1).processors })
	}
	return rows
}

func join(note, more string) string {
	if note == "" {
		return more
	}
	return note + "; " + more
}
