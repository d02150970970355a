package polyflake_test

import (
	"testing"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
	"github.com/polyflake/polyflake/bindings-c/go/internal/counter"
)

func TestIDsTakenInGo(t *testing.T) {
	for _, layout := range polyflake.Presets() {
		ids, err := polyflake.New(polyflake.WithLayout(layout), polyflake.Node(0))
		if err != nil {
			t.Fatal(err)
		}
		parsed := ids.Layout()
		end, ms := parsed.IDsPerTick()-1, parsed.EpochMs()
		at := func(tick int64, sequence uint64) polyflake.ID {
			id, err := parsed.Compose(time.UnixMilli(ms+tick*int64(parsed.TickMs())), 0, sequence)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		now := ms + int64(parsed.TickMs())
		lastMs := int64(parsed.TickMs()) - 1
		last := parsed.EndsAtMs()
		for _, c := range []struct {
			what       string
			last, want polyflake.ID
			nowMs      int64
			isClosed   bool
		}{
			{"the next one", at(1, 3), at(1, 4), now, false},
			{"the last ms of a tick", at(1, 3), at(1, 4), now + lastMs, false},
			{"the tick's last", at(1, end-1), at(1, end), now, false},
			{"the next tick's first", at(0, end), at(1, 0), now, false},
			{"a used up tick", at(1, end), 0, now, false},
			{"a new tick", at(0, 3), 0, now, false},
			{"a step back", at(1, 3), 0, now - 1, false},
			{"before the epoch", at(1, 3), 0, ms - 1, false},
			{"before 1970", at(1, 3), 0, -1, false},
			{"a closed one", at(1, 3), 0, now, true},
			{"the layout's last", at((last-ms)/int64(parsed.TickMs()), end), 0, last, false},
		} {
			if got := polyflake.NextInTick(ids, c.last, c.nowMs, c.isClosed); got != c.want {
				t.Errorf("%s, %s: %d after %d, not %d", layout, c.what, got, c.last, c.want)
			}
		}
	}
}

func TestOnlyTheSystemClockIsReadInGo(t *testing.T) {
	now := func() (time.Time, error) { return time.Now(), nil }
	for _, c := range []struct {
		clock polyflake.Option
		want  bool
	}{
		{polyflake.Set("clock", "system"), true},
		{polyflake.SteadyClock(), false},
		{polyflake.Clock(now), false},
	} {
		ids, err := polyflake.New(polyflake.Node(961), c.clock)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := polyflake.TakesIDsInGo(ids), c.want && counter.Exists; got != want {
			t.Errorf("%v, not %v", got, want)
		}
	}
}

func TestAClockReadingEndsWithItsWindow(t *testing.T) {
	const nowMs, longest = 1656432460105, 1<<20 - 1
	ids, err := polyflake.New(polyflake.Node(962))
	if err != nil {
		t.Fatal(err)
	}
	last, err := ids.Layout().Compose(time.UnixMilli(nowMs), 962, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, window := range []uint64{0, 1, 1000, longest} {
		if got := polyflake.NextByCounter(ids, last, nowMs, window, window); got != 0 {
			t.Errorf("an ID after a window of %d counts: %d", window, got)
		}
	}
	// Retries until a reading is used within its window.
	var got polyflake.ID
	for tries := 0; got == 0 && tries < 1_000_000; tries++ {
		got = polyflake.NextByCounter(ids, last, nowMs, 0, longest)
	}
	if got != last+1 {
		t.Errorf("got %d, not %d", got, last+1)
	}
}
