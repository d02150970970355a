// The cost of an ID in Go, with other packages and floors, round by round, as JSON Lines (benchmarks/README.md):
//
//	go run . [--rounds 9]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

type row struct {
	generator
	table      string
	measure    func() float64
	rounds     []float64
	goroutines int // that check for repeats; none for floors
}

const inALoop = ", in a loop"

type result struct {
	Kind     string    `json:"kind"`
	Language string    `json:"language"`
	Table    string    `json:"table"`
	Subject  string    `json:"subject"`
	Rounds   []float64 `json:"rounds"`
	Repeated *int      `json:"repeated"`
	IDs      *int      `json:"ids"`
	AheadMs  *int64    `json:"ahead_ms"`
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
		line := result{Kind: "result", Language: "Go", Table: r.table, Subject: r.name, Rounds: r.rounds}
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

func tables() []*row {
	var rows []*row
	add := func(table string, g generator, goroutines int, measure func() float64) {
		rows = append(rows, &row{generator: g, table: table, goroutines: goroutines, measure: measure})
	}
	single := func(table string, g generator, goroutines int) {
		add(table, g, goroutines, func() float64 { return timeBursts(g, max(goroutines, 1)) })
	}
	floor := func(table, name string, burst int, take func([]id)) {
		single(table, generator{name: name, burst: burst, step: 1, take: take, tick: millisecond}, 0)
	}

	const one, batches = "one ID", "batch of 1,000"
	generators := append([]generator{polyflakeSingle()}, peers()...)
	for _, g := range append(slices.Clone(generators), polyflakeGoClock()) {
		single(one, g, 1)
	}
	floor(one, "empty cgo call", batch, emptyCalls)
	floor(one, "time.Now().UnixMilli()", batch, readClock)
	floor(one, "polyflake_next_id in C", batch, inC("2"))

	for _, g := range polyflakeBatches() {
		single(batches, g, 1)
	}
	for _, g := range peers() {
		g.name += inALoop
		single(batches, g, 1)
	}
	floor(batches, "make([]ID, 1000)", 20*batch, makeSlices)
	floor(batches, "counting into a slice", 20*batch, countUp)

	for _, g := range decoders() {
		single("decode", g, 0)
	}
	for _, c := range codecs() {
		single("public ID, encode", c.encoder(), 0)
		single("public ID, decode", c.decoder(), 0)
	}

	for _, g := range generators {
		single("two goroutines, one generator", g, 2)
	}
	for _, g := range generators {
		add("full load, one goroutine", g, 1, func() float64 { return fullLoad(g, 1).percent })
		add("full load, two goroutines", g, 2, func() float64 { return fullLoad(g, 2).percent })
		add("processor time under full load, one goroutine", g, 1, func() float64 { return fullLoad(g, 1).processors })
	}
	return rows
}
