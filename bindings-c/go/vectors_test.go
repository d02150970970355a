package polyflake_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

// These tests run every case in tests/vectors.json, which describes its own format under "about", through the public
// API. A case whose number does not fit in a Go type is skipped.

type vectorFile struct {
	About          []string
	Errors         []errorCase
	Layouts        []layoutCase
	LayoutsRefused []layoutErrorCase `json:"layouts_refused"`
	Decode         []decodeCase
	DecodeRefused  []decodeCase `json:"decode_refused"`
	Compose        []composeCase
	ComposeRefused []composeCase `json:"compose_refused"`
	Bounds         []boundsCase
	Texts          []map[string]string
	TextsRead      []textCase `json:"texts_read"`
	TextsRefused   []textCase `json:"texts_refused"`
	Options        []optionsCase
	OptionsRefused []optionsCase `json:"options_refused"`
	Scripts        []scriptCase
}

type errorCase struct {
	Number int32
	Name   string
}

type layoutCase struct {
	Given          string
	Text           string
	EpochMs        int64  `json:"epoch_ms,string"`
	TickMs         uint64 `json:"tick_ms,string"`
	TotalBits      int    `json:"total_bits"`
	TimestampBits  int    `json:"timestamp_bits"`
	TimestampShift int    `json:"timestamp_shift"`
	SequenceBits   int    `json:"sequence_bits"`
	SequenceShift  int    `json:"sequence_shift"`
	NodeBits       int    `json:"node_bits"`
	IDsPerTick     uint64 `json:"ids_per_tick,string"`
	Nodes          uint64 `json:",string"`
	EndsAtMs       int64  `json:"ends_at_ms,string"`
	Fields         []struct {
		Name  string
		Bits  int
		Shift int
		Mask  uint64 `json:",string"`
	}
}

type layoutErrorCase struct{ Given, Error, Why string }

type decodeCase struct {
	Layout      string
	ID          string
	TimestampMs int64  `json:"timestamp_ms,string"`
	Ticks       uint64 `json:",string"`
	Node        uint64 `json:",string"`
	Fields      map[string]string
	Sequence    uint64 `json:",string"`
	Error       string
}

type composeCase struct {
	Layout   string
	TimeMs   string `json:"time_ms"`
	Node     nodeValue
	Sequence string
	ID       string
	Error    string
}

type boundsCase struct {
	Layout string
	TimeMs string `json:"time_ms"`
	MinID  bound  `json:"min_id"`
	MaxID  bound  `json:"max_id"`
}

type textCase struct {
	Format, Text, ID, Error string
	Position                *int
}

type optionsCase struct {
	Options  optionTexts
	Node     string
	Layout   string
	Error    string
	TextOnly bool `json:"text_only"`
}

type optionTexts map[string]nodeValue

type scriptCase struct {
	Name, Why string
	Options   optionTexts
	Steps     []step
}

type step struct {
	Clock, Advance, Until string
	Call                  string
	N                     string
	ID                    string
	IDs                   []string
	Run                   *struct{ Count, First, Last string }
	Error                 string
	BehindMs              *string `json:"behind_ms"`
	RetryAfterMs          *string `json:"retry_after_ms"`
}

// nodeValue is a string, or a map from fields to strings; both are nil if there is no node.
type nodeValue struct {
	text   *string
	fields map[string]string
}

func (v *nodeValue) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		return json.Unmarshal(data, &v.fields)
	}
	return json.Unmarshal(data, &v.text)
}

// bound is an ID or the name of an error.
type bound struct{ id, error string }

func (b *bound) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return json.Unmarshal(data, &b.id)
	}
	var expected struct{ Error string }
	err := json.Unmarshal(data, &expected)
	b.error = expected.Error
	return err
}

func vectors(tb testing.TB) vectorFile {
	tb.Helper()
	file, err := os.Open("../../tests/vectors.json")
	if err != nil {
		tb.Fatalf("the vectors are in Polyflake's repository, not in the module: %v", err)
	}
	defer file.Close()
	var v vectorFile
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields() // so that no new section or key goes unnoticed
	if err := decoder.Decode(&v); err != nil {
		tb.Fatal(err)
	}
	return v
}

// each runs every case in a section.
func each[C any](t *testing.T, cases []C, run func(t *testing.T, c C)) {
	t.Helper()
	if len(cases) == 0 {
		t.Fatal("the section is empty")
	}
	for number, c := range cases {
		name := strconv.Itoa(number)
		if script, ok := any(c).(scriptCase); ok {
			name = script.Name
		}
		t.Run(name, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("case: %+v", c)
				}
			}()
			run(t, c)
		})
	}
}

// number parses a number that always fits in 64 bits, such as an expected ID.
func number(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// given parses an argument, and skips the test if it does not fit in a Go type.
func given(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Skipf("no uint64 holds %s", text)
	}
	return n
}

// instant parses Unix ms, which may need more than 64 bits; a time.Time can hold that many.
func instant(t *testing.T, text string) time.Time {
	t.Helper()
	ms, ok := new(big.Int).SetString(text, 10)
	if !ok {
		t.Fatalf("%q is not a number", text)
	}
	seconds, rest := new(big.Int).DivMod(ms, big.NewInt(1000), new(big.Int))
	if !seconds.IsInt64() {
		t.Skipf("no time.Time holds %s", text)
	}
	return time.Unix(seconds.Int64(), rest.Int64()*int64(time.Millisecond))
}

func layoutOf(t *testing.T, text string) polyflake.Layout {
	t.Helper()
	layout, err := polyflake.ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

func equal[V comparable](t *testing.T, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

var codes = map[string]polyflake.Code{
	"invalid_layout":        polyflake.ErrInvalidLayout,
	"unknown_layout":        polyflake.ErrUnknownLayout,
	"invalid_node":          polyflake.ErrInvalidNode,
	"invalid_option":        polyflake.ErrInvalidOption,
	"invalid_id":            polyflake.ErrInvalidID,
	"time_out_of_range":     polyflake.ErrTimeOutOfRange,
	"clock_moved_backwards": polyflake.ErrClockMovedBackwards,
	"sequence_exhausted":    polyflake.ErrSequenceExhausted,
	"forked":                polyflake.ErrForked,
	"clock_failed":          polyflake.ErrClockFailed,
	"state_file":            polyflake.ErrStateFile,
	"lease_unavailable":     polyflake.ErrLeaseUnavailable,
	"lease_lost":            polyflake.ErrLeaseLost,
	"closed":                polyflake.ErrClosed,
	"counter_unavailable":   polyflake.ErrCounterUnavailable,
	"internal":              polyflake.ErrInternal,
}

// wantError checks an error's code, name and message, and that errors.Is and errors.As recognize it.
func wantError(t *testing.T, err error, name string) *polyflake.Error {
	t.Helper()
	code, known := codes[name]
	if !known {
		t.Fatalf("there is no error named %s", name)
	}
	var e *polyflake.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want %s", err, name)
	}
	for other, otherCode := range codes {
		if errors.Is(err, otherCode) != (other == name) {
			t.Fatalf("got %v, want %s", err, name)
		}
	}
	equal(t, "the code", e.Code, code)
	equal(t, "the name", e.Name, name)
	if !strings.HasPrefix(err.Error(), "polyflake: "+name+": ") {
		t.Errorf("the message does not begin with the name: %v", err)
	}
	return e
}

func TestVectorErrors(t *testing.T) {
	cases := vectors(t).Errors
	equal(t, "the number of errors", len(cases), len(codes))
	each(t, cases, func(t *testing.T, c errorCase) {
		equal(t, c.Name, codes[c.Name], polyflake.Code(c.Number))
		equal(t, "the name", polyflake.Code(c.Number).Name(), c.Name)
	})
}

func TestVectorLayouts(t *testing.T) {
	each(t, vectors(t).Layouts, func(t *testing.T, c layoutCase) {
		layout := layoutOf(t, c.Given)
		equal(t, "String", layout.String(), c.Text)
		equal(t, "the layout of the text", layoutOf(t, c.Text), layout)
		equal(t, "EpochMs", layout.EpochMs(), c.EpochMs)
		equal(t, "Epoch", layout.Epoch(), time.UnixMilli(c.EpochMs).UTC())
		equal(t, "TickMs", layout.TickMs(), c.TickMs)
		equal(t, "EndsAtMs", layout.EndsAtMs(), c.EndsAtMs)
		equal(t, "EndsAt", layout.EndsAt(), time.UnixMilli(c.EndsAtMs).UTC())
		equal(t, "IDsPerTick", layout.IDsPerTick(), c.IDsPerTick)
		equal(t, "Nodes", layout.Nodes(), c.Nodes)
		equal(t, "TotalBits", layout.TotalBits(), c.TotalBits)
		equal(t, "TimestampBits", layout.TimestampBits(), c.TimestampBits)
		equal(t, "TimestampShift", layout.TimestampShift(), c.TimestampShift)
		equal(t, "SequenceBits", layout.SequenceBits(), c.SequenceBits)
		equal(t, "SequenceShift", layout.SequenceShift(), c.SequenceShift)
		equal(t, "NodeBits", layout.NodeBits(), c.NodeBits)
		fields := layout.Fields()
		equal(t, "the number of fields", len(fields), len(c.Fields))
		for n, field := range fields {
			want := c.Fields[n]
			isNode := want.Name != "timestamp" && want.Name != "sequence"
			equal(t, "a field", field, polyflake.Field{
				Name: want.Name, Bits: want.Bits, Shift: want.Shift, Mask: want.Mask, IsNode: isNode,
			})
		}
	})
}

func TestVectorPresets(t *testing.T) {
	var names []string
	for _, c := range vectors(t).Layouts {
		if !strings.ContainsAny(c.Given, ":|@/") {
			names = append(names, c.Given)
		}
	}
	equal(t, "the default", polyflake.Presets()[0], "twitter")
	equal(t, "the presets", fmt.Sprint(slices.Sorted(slices.Values(polyflake.Presets()))),
		fmt.Sprint(slices.Sorted(slices.Values(names))))
}

func TestVectorLayoutsRefused(t *testing.T) {
	each(t, vectors(t).LayoutsRefused, func(t *testing.T, c layoutErrorCase) {
		_, err := polyflake.ParseLayout(c.Given)
		wantError(t, err, c.Error)
	})
}

func TestVectorDecode(t *testing.T) {
	each(t, vectors(t).Decode, func(t *testing.T, c decodeCase) {
		layout := layoutOf(t, c.Layout)
		id := polyflake.ID(number(t, c.ID))
		decoded, err := layout.Decode(id)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "ID", decoded.ID, id)
		equal(t, "TimestampMs", decoded.TimestampMs, c.TimestampMs)
		equal(t, "Time", decoded.Time, time.UnixMilli(c.TimestampMs).UTC())
		equal(t, "Ticks", decoded.Ticks, c.Ticks)
		equal(t, "Node", decoded.Node, c.Node)
		equal(t, "Sequence", decoded.Sequence, c.Sequence)
		equal(t, "Layout", decoded.Layout, layout)
		fields := map[string]uint64{}
		for name, value := range c.Fields {
			fields[name] = number(t, value)
		}
		if !maps.Equal(decoded.Fields(), fields) {
			t.Errorf("Fields is %v, want %v", decoded.Fields(), fields)
		}
	})
}

func TestVectorDecodeRefused(t *testing.T) {
	each(t, vectors(t).DecodeRefused, func(t *testing.T, c decodeCase) {
		// A number that is too large for an ID already fails when it is parsed.
		id, err := polyflake.ParseID(c.ID, polyflake.Decimal)
		if err == nil {
			_, err = layoutOf(t, c.Layout).Decode(id)
		}
		wantError(t, err, c.Error)
	})
}

func compose(t *testing.T, c composeCase) (polyflake.ID, error) {
	layout, at, sequence := layoutOf(t, c.Layout), instant(t, c.TimeMs), given(t, c.Sequence)
	if c.Node.text != nil {
		return layout.Compose(at, given(t, *c.Node.text), sequence)
	}
	fields := map[string]uint64{}
	for name, value := range c.Node.fields {
		fields[name] = given(t, value)
	}
	return layout.ComposeFields(at, fields, sequence)
}

func TestVectorCompose(t *testing.T) {
	each(t, vectors(t).Compose, func(t *testing.T, c composeCase) {
		id, err := compose(t, c)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "the ID", id, polyflake.ID(number(t, c.ID)))
	})
}

func TestVectorComposeRefused(t *testing.T) {
	each(t, vectors(t).ComposeRefused, func(t *testing.T, c composeCase) {
		id, err := compose(t, c)
		wantError(t, err, c.Error)
		equal(t, "the ID", id, 0)
	})
}

func TestVectorBounds(t *testing.T) {
	each(t, vectors(t).Bounds, func(t *testing.T, c boundsCase) {
		layout, at := layoutOf(t, c.Layout), instant(t, c.TimeMs)
		for _, side := range []struct {
			call func(time.Time) (polyflake.ID, error)
			want bound
		}{{layout.MinID, c.MinID}, {layout.MaxID, c.MaxID}} {
			id, err := side.call(at)
			if side.want.error != "" {
				wantError(t, err, side.want.error)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "the ID", id, polyflake.ID(number(t, side.want.id)))
		}
	})
}

func TestVectorTexts(t *testing.T) {
	formats := []string{polyflake.Decimal, polyflake.Hex, polyflake.Base32, polyflake.Base36, polyflake.Base58,
		polyflake.Base62, polyflake.UUID, polyflake.BwmarrinBase32, polyflake.BwmarrinBase58}
	each(t, vectors(t).Texts, func(t *testing.T, c map[string]string) {
		id := polyflake.ID(number(t, c["id"]))
		equal(t, "the number of formats", len(c), len(formats)+1)
		for _, format := range formats {
			text, err := id.Format(format)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, format, text, c[format])
			read, err := polyflake.ParseID(text, format)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, format+" read back", read, id)
		}
	})
}

func TestVectorTextsRead(t *testing.T) {
	each(t, vectors(t).TextsRead, func(t *testing.T, c textCase) {
		id, err := polyflake.ParseID(c.Text, c.Format)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "the ID", id, polyflake.ID(number(t, c.ID)))
	})
}

func TestVectorTextsRefused(t *testing.T) {
	position := regexp.MustCompile(`\bposition (\d+)\b`)
	each(t, vectors(t).TextsRefused, func(t *testing.T, c textCase) {
		_, err := polyflake.ParseID(c.Text, c.Format)
		message := wantError(t, err, c.Error).Message
		var want []string
		if c.Position != nil {
			want = []string{fmt.Sprintf("position %d", *c.Position)}
		}
		if got := position.FindAllString(message, -1); !slices.Equal(got, want) {
			t.Errorf("the message names %v, want %v: %s", got, want, message)
		}
	})
}

// heldClock returns the value that a step sets, advanced by each reading after the first.
type heldClock struct {
	value, advance, until int64
	wasRead               bool
}

func (c *heldClock) set(t *testing.T, s step) {
	ms := func(text string, otherwise int64) int64 {
		if text == "" {
			return otherwise
		}
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	c.value = ms(s.Clock, c.value)
	c.advance = ms(s.Advance, 0)
	c.until = ms(s.Until, c.value)
	c.wasRead = false
}

func (c *heldClock) now() (time.Time, error) {
	if c.wasRead {
		c.value = min(c.value+c.advance, c.until)
	}
	c.wasRead = true
	return time.UnixMilli(c.value), nil
}

// optionsOf sets each option with its own function if that function can express the value, otherwise with Set.
func optionsOf(texts optionTexts) []polyflake.Option {
	var options []polyflake.Option
	for name, value := range texts {
		options = append(options, optionOf(name, value))
	}
	return options
}

func optionOf(name string, value nodeValue) polyflake.Option {
	if value.text == nil {
		fields := map[string]uint64{}
		var pairs []string
		expressible := true
		for field, text := range value.fields {
			n, err := strconv.ParseUint(text, 10, 64)
			fields[field] = n
			pairs = append(pairs, field+"="+text)
			expressible = expressible && err == nil
		}
		if expressible {
			return polyflake.NodeFields(fields)
		}
		return polyflake.Set("node", strings.Join(pairs, ","))
	}
	text := *value.text
	durations := map[string]func(time.Duration) polyflake.Option{
		"max_backward_ms": polyflake.MaxBackward,
		"max_ahead_ms":    polyflake.MaxAhead,
		"max_wait_ms":     polyflake.MaxWait,
	}
	if option := durations[name]; option != nil {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err == nil && ms <= math.MaxInt64/int64(time.Millisecond) {
			return option(time.Duration(ms) * time.Millisecond)
		}
		return polyflake.Set(name, text)
	}
	switch name {
	case "node":
		if node, err := strconv.ParseUint(text, 10, 64); err == nil {
			return polyflake.Node(node)
		}
		return polyflake.Set(name, text)
	case "node_text":
		return polyflake.Set("node", text)
	case "layout":
		return polyflake.WithLayout(text)
	case "sequence_start":
		return polyflake.SequenceStart(text)
	case "clock":
		if text == "steady" {
			return polyflake.SteadyClock()
		}
	}
	return polyflake.Set(name, text)
}

// build uses a custom clock, unless the options name one, because Snowflakes on a built-in clock share their cursors.
func build(texts optionTexts) (*polyflake.Snowflake, error) {
	options := optionsOf(texts)
	if _, named := texts["clock"]; !named {
		options = append(options, polyflake.Clock((&heldClock{value: 1656432460105}).now))
	}
	return polyflake.New(options...)
}

func TestVectorOptions(t *testing.T) {
	each(t, vectors(t).Options, func(t *testing.T, c optionsCase) {
		snowflake, err := build(c.Options)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "Node", snowflake.Node(), number(t, c.Node))
		equal(t, "Layout", snowflake.Layout().String(), c.Layout)
	})
}

func TestVectorOptionsRefused(t *testing.T) {
	each(t, vectors(t).OptionsRefused, func(t *testing.T, c optionsCase) {
		_, err := build(c.Options)
		wantError(t, err, c.Error)
	})
}

func TestVectorScripts(t *testing.T) {
	each(t, vectors(t).Scripts, func(t *testing.T, c scriptCase) {
		clock := &heldClock{}
		snowflake, err := polyflake.New(append(optionsOf(c.Options), polyflake.Clock(clock.now))...)
		if err != nil {
			t.Fatal(err)
		}
		var last polyflake.ID
		lastIsKnown := true // an error may lose IDs
		for n, s := range c.Steps {
			clock.set(t, s)
			inGo := polyflake.NextInTick(snowflake, last, clock.value, false)
			ids, err, called := call(t, snowflake, s)
			if !called {
				lastIsKnown = false
				continue
			}
			checkStep(t, s, ids, err)
			if err == nil {
				if lastIsKnown && inGo != 0 && inGo != ids[0] {
					t.Errorf("in Go, the ID would be %d, not %d", inGo, ids[0])
				}
				last, lastIsKnown = ids[len(ids)-1], true
			} else if s.Call == "next_ids" {
				lastIsKnown = false
			} else if lastIsKnown && inGo != 0 {
				t.Errorf("in Go, there would be an ID: %d", inGo)
			}
			if t.Failed() {
				t.Fatalf("step %d: %+v", n, s)
			}
		}
	})
}

func call(t *testing.T, snowflake *polyflake.Snowflake, s step) (ids []polyflake.ID, err error, called bool) {
	var id polyflake.ID
	switch s.Call {
	case "next_id":
		id, err = snowflake.NextID()
	case "try_next_id":
		id, err = snowflake.TryNextID()
	case "next_ids":
		n, notInt := strconv.Atoi(s.N)
		if notInt != nil {
			t.Logf("passed over: %s does not fit an int", s.N)
			return nil, nil, false
		}
		ids, err = snowflake.NextIDs(n)
		return ids, err, true
	default:
		t.Fatalf("unknown call %s", s.Call)
	}
	return []polyflake.ID{id}, err, true
}

func checkStep(t *testing.T, s step, ids []polyflake.ID, err error) {
	t.Helper()
	if s.Error != "" {
		e := wantError(t, err, s.Error)
		if s.BehindMs != nil {
			equal(t, "BehindMs", e.BehindMs, number(t, *s.BehindMs))
		}
		if s.RetryAfterMs != nil {
			equal(t, "RetryAfterMs", e.RetryAfterMs, number(t, *s.RetryAfterMs))
		}
		return
	}
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	if s.Run != nil {
		equal(t, "the number of IDs", uint64(len(ids)), number(t, s.Run.Count))
		equal(t, "the first ID", ids[0], polyflake.ID(number(t, s.Run.First)))
		equal(t, "the last ID", ids[len(ids)-1], polyflake.ID(number(t, s.Run.Last)))
		if !slices.IsSorted(ids) || len(slices.Compact(ids)) != len(ids) {
			t.Error("the IDs do not increase")
		}
		return
	}
	texts := s.IDs
	if texts == nil {
		texts = []string{s.ID}
	}
	var want []polyflake.ID
	for _, text := range texts {
		want = append(want, polyflake.ID(number(t, text)))
	}
	if !reflect.DeepEqual(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
}
