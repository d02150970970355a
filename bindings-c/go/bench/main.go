// The time of an ID beside other packages' and beside its floors, as medians of interleaved rounds:
//
//	go run . [-rounds 9] [-ms 60]
//
// It decides nothing by itself: figures differ between machines, and only those of one run compare.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/bwmarrin/snowflake"
	polyflake "github.com/polyflake/polyflake/bindings-c/go"
	"github.com/sony/sonyflake"
	sonyflake2 "github.com/sony/sonyflake/v2"
)

const (
	// Layouts whose sequence no generator here uses up: those of 12 bits hold every one that repeats nothing to 244 ns.
	// 20 bits are what the other packages can be set to, of the 22 that they share with the node.
	layout = "timestamp:41|node:2|sequence:20@1735689600000/1ms"
	// A batch uses up even those.
	batchLayout = "timestamp:38|node:1|sequence:25@1735689600000/1ms"
	batch       = 1000
)

// made keeps what is made on the heap.
var made []polyflake.ID

type subject struct {
	name string
	// run makes n IDs.
	run   func(n int) error
	count int       // of IDs a round
	times []float64 // ns an ID, of each round
}

func main() {
	rounds := flag.Int("rounds", 9, "how often each is measured")
	ms := flag.Int("ms", 60, "about how many ms each measurement takes")
	flag.Parse()
	if err := bench(*rounds, time.Duration(*ms)*time.Millisecond); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bench(rounds int, duration time.Duration) error {
	subjects, err := prepare()
	if err != nil {
		return err
	}
	for _, s := range subjects {
		if err := s.calibrate(duration); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for range rounds {
		for _, s := range subjects {
			took, err := s.measure()
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			s.times = append(s.times, float64(took)/float64(s.count))
		}
	}
	report(subjects, rounds)
	return nil
}

func (s *subject) measure() (time.Duration, error) {
	start := time.Now()
	err := s.run(s.count)
	return time.Since(start), err
}

func (s *subject) calibrate(duration time.Duration) error {
	for s.count = batch; ; s.count *= 2 {
		took, err := s.measure()
		if err != nil || took >= duration/2 {
			return err
		}
	}
}

func median(times []float64) float64 {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}

const (
	emptyCall = "an empty cgo call"
	core      = "NextID's work in C, no Go (floor)"
	single    = "polyflake NextID"
)

func prepare() ([]*subject, error) {
	ids, err := polyflake.New(polyflake.WithLayout(layout), polyflake.Node(1))
	if err != nil {
		return nil, err
	}
	batches, err := polyflake.New(polyflake.WithLayout(batchLayout), polyflake.Node(1))
	if err != nil {
		return nil, err
	}
	goClock, err := polyflake.New(polyflake.WithLayout(layout), polyflake.Node(3),
		polyflake.Clock(func() (time.Time, error) { return time.Now(), nil }))
	if err != nil {
		return nil, err
	}

	// The package's own way to set it.
	snowflake.NodeBits, snowflake.StepBits = 2, 20
	bwmarrin, err := snowflake.NewNode(1)
	if err != nil {
		return nil, err
	}
	sony, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return 1, nil }})
	if err != nil {
		return nil, err
	}
	sony2, err := sonyflake2.New(sonyflake2.Settings{
		BitsSequence: 20, BitsMachineID: 2, TimeUnit: time.Millisecond, MachineID: func() (int, error) { return 1, nil },
	})
	if err != nil {
		return nil, err
	}

	buffer := make([]polyflake.ID, batch)
	return []*subject{
		{name: emptyCall, run: emptyCalls},
		{name: core, run: inC(layout, "2")},
		{name: single, run: oneByOne(ids.NextID)},
		{name: "polyflake NextID, clock in Go", run: oneByOne(goClock.NextID)},
		{name: module("github.com/bwmarrin/snowflake") + " Generate", run: func(n int) error {
			for range n {
				bwmarrin.Generate()
			}
			return nil
		}},
		{name: module("github.com/sony/sonyflake/v2") + " NextID", run: oneByOne(sony2.NextID)},
		{name: module("github.com/sony/sonyflake") + " NextID, 25.6 IDs a ms at most", run: oneByOne(sony.NextID)},
		{name: "polyflake Fill, 1000", run: func(n int) error {
			for done := 0; done < n; done += batch {
				if err := batches.Fill(buffer); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "make([]polyflake.ID, 1000) (floor of NextIDs)", run: func(n int) error {
			for done := 0; done < n; done += batch {
				made = make([]polyflake.ID, batch)
			}
			return nil
		}},
		{name: "polyflake NextIDs, 1000", run: func(n int) error {
			for done := 0; done < n; done += batch {
				if _, err := batches.NextIDs(batch); err != nil {
					return err
				}
			}
			return nil
		}},
	}, nil
}

// module is a module's path and the version that was built in.
func module(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == path {
			return path + " " + dependency.Version
		}
	}
	return path
}

func oneByOne[ID any](next func() (ID, error)) func(n int) error {
	return func(n int) error {
		for range n {
			if _, err := next(); err != nil {
				return err
			}
		}
		return nil
	}
}

func report(subjects []*subject, rounds int) {
	times := map[string][]float64{}
	for _, s := range subjects {
		times[s.name] = s.times
	}
	fmt.Printf("%s, %s/%s, %d processors, %d interleaved rounds\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.GOMAXPROCS(0), rounds)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "median\tbest\tworst\tto NextID\t ns an ID")
	for _, s := range subjects {
		fmt.Fprintf(table, "%.2f\t%.2f\t%.2f\t%.3f\t %s\n", median(s.times), slices.Min(s.times), slices.Max(s.times),
			median(s.times)/median(times[single]), s.name)
	}
	table.Flush()

	// Within a round first: what else the machine does meanwhile then weighs on all three.
	var more []float64
	for n, took := range times[single] {
		more = append(more, took-times[emptyCall][n]-times[core][n])
	}
	fmt.Printf("\nNextID costs %.1f ns more than an empty cgo call and its work in C together.\n", median(more))
}
