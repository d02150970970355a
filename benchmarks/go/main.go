// The cost of an ID in Go, with other packages and floors. ../harness.py tells this program what to measure.
package main

import (
	"bufio"
	"fmt"
	"os"
)

type row struct {
	table string
	generator
	goroutines int
	measure    func() []float64
}

func main() {
	for _, r := range tables() {
		switch {
		case len(os.Args) < 3:
			fmt.Printf("%s\t%s\n", r.table, r.name)
		case r.table == os.Args[1] && r.name == os.Args[2]:
			r.answer()
		}
	}
}

func (r row) answer() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var n int
		var file string
		if _, err := fmt.Sscanf(lines.Text(), "ids %d %s", &n, &file); err != nil {
			for _, figure := range r.measure() {
				fmt.Print(figure, " ")
			}
			fmt.Println()
		} else if r.step == 0 {
			fmt.Println(0, 1)
		} else {
			writeIDs(r.generator, r.goroutines, n, file)
		}
	}
}

func tables() []row {
	var rows []row
	single := func(table string, g generator, goroutines int) {
		measure := func() []float64 { return []float64{timeBursts(g, goroutines)} }
		rows = append(rows, row{table, g, goroutines, measure})
	}
	loaded := func(table string, g generator, goroutines int) {
		rows = append(rows, row{table, g, goroutines, nil}) // measured by its IDs
	}
	floor := func(table, name string, burst int, take func([]id)) {
		single(table, generator{name: name, burst: burst, take: take, tick: millisecond}, 1)
	}

	const one, batches = "one ID", "batch of 1,000"
	generators := append([]generator{polyflakeSingle()}, peers()...)
	for _, g := range generators {
		single(one, g, 1)
	}
	floor(one, "polyflake_next_id in C", batch, inC("2"))
	for _, g := range polyflakeBatches() {
		single(batches, g, 1)
	}
	for _, g := range peers() {
		g.name += ", in a loop"
		single(batches, g, 1)
	}
	floor(batches, "make([]ID, 1000)", 20*batch, makeSlices)
	floor(batches, "counting into a slice", 20*batch, countUp)
	for _, g := range decoders() {
		single("decode", g, 1)
	}
	for _, c := range codecs() {
		single("public ID, encode", c.encoder(), 1)
		single("public ID, decode", c.decoder(), 1)
	}
	for _, g := range generators {
		single("two goroutines, one generator", g, 2)
		loaded("full load, one goroutine|processor time under full load, one goroutine", g, 1)
		loaded("full load, two goroutines", g, 2)
	}
	return rows
}
