package polyflake

// #cgo noescape polyflake_layout_parse
// #cgo nocallback polyflake_layout_parse
// #cgo noescape polyflake_layout_text
// #cgo nocallback polyflake_layout_text
// #cgo noescape polyflake_layout_properties
// #cgo nocallback polyflake_layout_properties
// #cgo noescape polyflake_layout_field
// #cgo nocallback polyflake_layout_field
// #cgo noescape polyflake_layout_decode
// #cgo nocallback polyflake_layout_decode
// #cgo noescape polyflake_options_compose
// #cgo nocallback polyflake_options_compose
// #cgo noescape polyflake_layout_min_id
// #cgo nocallback polyflake_layout_min_id
// #cgo noescape polyflake_layout_max_id
// #cgo nocallback polyflake_layout_max_id
// #include <polyflake.h>
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"
)

// Layout is what the bits of an ID mean: its fields from the highest bit down, the epoch, and how long a tick is.
// [ParseLayout] gives one. It is a value: it compares with ==, serves as a map's key, prints as its text, and is read
// from and written to JSON and the like as that. Any number of goroutines may use it.
//
// The zero Layout has no fields, and what takes it refuses it.
type Layout struct {
	// One for each layout, so that equal layouts are equal pointers; see intern.
	data *layoutData
}

type layoutData struct {
	c      *C.polyflake_layout
	text   string
	info   C.polyflake_layout_info
	fields []Field
}

// Field is a field of a [Layout].
type Field struct {
	// Name is "timestamp", "sequence", or a node field's name.
	Name string
	// Bits is the field's width.
	Bits int
	// Shift is how many bits stand below the field.
	Shift int
	// Mask is the field's bits, in their place in the ID.
	Mask uint64
	// IsNode is false for the timestamp and the sequence.
	IsNode bool
}

// ParseLayout gives the layout of a preset's name, such as "discord", or of a layout's text, such as
//
//	timestamp:41|worker:10|sequence:12@1288834974657/1ms
//
// that is FIELD:BITS joined by |, then @ and the epoch in Unix ms, then / and the tick as Nms or Ns.
//
// It gives [ErrUnknownLayout] or [ErrInvalidLayout].
func ParseLayout(text string) (Layout, error) {
	var c *C.polyflake_layout
	detail := newDetail()
	if err := check(C.polyflake_layout_parse(cText(text), &c, &detail), &detail); err != nil {
		return Layout{}, err
	}
	data, err := newLayoutData(c)
	if err != nil {
		C.polyflake_layout_free(c)
		return Layout{}, err
	}
	return Layout{intern(data)}, nil
}

// Presets are the names of the layouts of the field, the default first.
func Presets() []string {
	names := make([]string, C.polyflake_preset_count())
	for n := range names {
		names[n] = C.GoString(C.polyflake_preset_name(C.size_t(n)))
	}
	return names
}

func newLayoutData(c *C.polyflake_layout) (*layoutData, error) {
	detail := newDetail()
	text, err := layoutText(c)
	if err != nil {
		return nil, err
	}
	data := &layoutData{c: c, text: text}
	info := C.polyflake_layout_info{size: C.sizeof_polyflake_layout_info}
	if err := check(C.polyflake_layout_properties(c, &info, &detail), &detail); err != nil {
		return nil, err
	}
	data.info = info
	for n := range info.field_count {
		field := C.polyflake_field{size: C.sizeof_polyflake_field}
		if err := check(C.polyflake_layout_field(c, C.size_t(n), &field, &detail), &detail); err != nil {
			return nil, err
		}
		data.fields = append(data.fields, Field{
			Name:   goText(field.name[:]),
			Bits:   int(field.bits),
			Shift:  int(field.shift),
			Mask:   uint64(field.mask),
			IsNode: field.is_node != 0,
		})
	}
	return data, nil
}

func layoutText(c *C.polyflake_layout) (string, error) {
	var text [C.POLYFLAKE_LAYOUT_TEXT_SIZE]C.char
	detail := newDetail()
	err := check(C.polyflake_layout_text(c, &text[0], C.size_t(len(text)), &detail), &detail)
	return goText(text[:]), err
}

// From a layout's text to its weak.Pointer[layoutData].
var layouts sync.Map

// intern gives the one layoutData of that text that is alive, which is data where there was none.
func intern(data *layoutData) *layoutData {
	made := weak.Make(data)
	type owned struct {
		c    *C.polyflake_layout
		text string
	}
	runtime.AddCleanup(data, func(o owned) {
		layouts.CompareAndDelete(o.text, made)
		C.polyflake_layout_free(o.c)
	}, owned{data.c, data.text})
	for {
		held, _ := layouts.LoadOrStore(data.text, made)
		if alive := held.(weak.Pointer[layoutData]).Value(); alive != nil {
			return alive
		}
		layouts.CompareAndDelete(data.text, held)
	}
}

var noLayout layoutData

// c is NULL for the zero Layout, which the library refuses. Keep data alive until the call has returned.
func (l Layout) c() *C.polyflake_layout {
	return l.properties().c
}

func (l Layout) properties() *layoutData {
	if l.data == nil {
		return &noLayout
	}
	return l.data
}

// String is the layout's text, which [ParseLayout] reads.
func (l Layout) String() string {
	return l.properties().text
}

// MarshalText gives the layout's text.
func (l Layout) MarshalText() ([]byte, error) {
	return []byte(l.String()), nil
}

// UnmarshalText reads what [ParseLayout] does.
func (l *Layout) UnmarshalText(text []byte) error {
	layout, err := ParseLayout(string(text))
	if err == nil {
		*l = layout
	}
	return err
}

// Fields are the fields from the highest down, the timestamp and the sequence among them.
func (l Layout) Fields() []Field {
	return slices.Clone(l.properties().fields)
}

// Epoch is the instant of tick 0.
func (l Layout) Epoch() time.Time {
	return utc(l.properties().info.epoch_ms)
}

// EpochMs is the instant of tick 0, in Unix ms.
func (l Layout) EpochMs() int64 {
	return int64(l.properties().info.epoch_ms)
}

// TickMs is how long a tick lasts, in ms.
func (l Layout) TickMs() uint64 {
	return uint64(l.properties().info.tick_ms)
}

// EndsAt is the layout's last instant. A [time.Time] reaches it whatever the layout, but past the year 9999 (as for
// "mastodon", in 10889) its JSON and text forms refuse it.
func (l Layout) EndsAt() time.Time {
	return utc(l.properties().info.ends_at_ms)
}

// EndsAtMs is the layout's last instant, in Unix ms.
func (l Layout) EndsAtMs() int64 {
	return int64(l.properties().info.ends_at_ms)
}

// IDsPerTick is how many IDs one node can issue in a tick.
func (l Layout) IDsPerTick() uint64 {
	return uint64(l.properties().info.ids_per_tick)
}

// Nodes is how many nodes the layout tells apart.
func (l Layout) Nodes() uint64 {
	return uint64(l.properties().info.nodes)
}

// TotalBits is the width of all fields together.
func (l Layout) TotalBits() int {
	return int(l.properties().info.total_bits)
}

// TimestampBits is the width of the timestamp.
func (l Layout) TimestampBits() int {
	return int(l.properties().info.timestamp_bits)
}

// TimestampShift is how many bits stand below the timestamp.
func (l Layout) TimestampShift() int {
	return int(l.properties().info.timestamp_shift)
}

// SequenceBits is the width of the sequence.
func (l Layout) SequenceBits() int {
	return int(l.properties().info.sequence_bits)
}

// SequenceShift is how many bits stand below the sequence.
func (l Layout) SequenceShift() int {
	return int(l.properties().info.sequence_shift)
}

// NodeBits is the width of all node fields together.
func (l Layout) NodeBits() int {
	return int(l.properties().info.node_bits)
}

// Decode takes an ID apart. It gives [ErrInvalidID] for one with bits above the layout's.
func (l Layout) Decode(id ID) (Decoded, error) {
	detail := newDetail()
	c := C.polyflake_decoded{size: C.sizeof_polyflake_decoded}
	err := check(C.polyflake_layout_decode(l.c(), C.uint64_t(id), &c, &detail), &detail)
	runtime.KeepAlive(l.data)
	if err != nil {
		return Decoded{}, err
	}
	decoded := Decoded{
		ID:          ID(c.id),
		Time:        utc(c.timestamp_ms),
		TimestampMs: int64(c.timestamp_ms),
		Ticks:       uint64(c.ticks),
		Node:        uint64(c.node),
		Sequence:    uint64(c.sequence),
		Layout:      l,
	}
	for n, value := range c.fields[:c.field_count] {
		decoded.fields[n] = uint64(value)
	}
	return decoded, nil
}

// Compose gives the ID of an instant, which is rounded down to its tick, of a whole node and of a sequence number.
// Nothing keeps it from repeating an ID that was issued.
//
// It gives [ErrTimeOutOfRange], [ErrInvalidNode], or [ErrInvalidOption] for the sequence. A layout without node
// fields takes node 0.
func (l Layout) Compose(t time.Time, node, sequence uint64) (ID, error) {
	return l.compose(t, Node(node), sequence)
}

// ComposeFields is [Layout.Compose] with the node field by field.
func (l Layout) ComposeFields(t time.Time, node map[string]uint64, sequence uint64) (ID, error) {
	return l.compose(t, NodeFields(node), sequence)
}

func (l Layout) compose(t time.Time, node Option, sequence uint64) (ID, error) {
	ms, _, err := unixTime(t)
	if err != nil {
		return 0, err
	}
	s := settings{options: C.polyflake_options_new()}
	defer C.polyflake_options_free(s.options)
	for _, option := range []Option{WithLayout(l), node} {
		if err := option(&s); err != nil {
			return 0, err
		}
	}
	detail := newDetail()
	var id C.uint64_t
	status := C.polyflake_options_compose(s.options, C.int64_t(ms), C.uint64_t(sequence), &id, &detail)
	return ID(id), check(status, &detail)
}

// MinID is the lowest ID at or after an instant, for range queries by time:
//
//	WHERE id BETWEEN layout.MinID(from) AND layout.MaxID(to)
//
// It gives [ErrTimeOutOfRange], or [ErrInvalidLayout] where a node field stands above the timestamp.
func (l Layout) MinID(t time.Time) (ID, error) {
	ms, nanoseconds, err := unixTime(t)
	if err != nil {
		return 0, err
	}
	detail := newDetail()
	var id C.uint64_t
	status := C.polyflake_layout_min_id(l.c(), C.int64_t(ms), C.uint32_t(nanoseconds), &id, &detail)
	runtime.KeepAlive(l.data)
	return ID(id), check(status, &detail)
}

// MaxID is the highest ID at or before an instant; see [Layout.MinID].
func (l Layout) MaxID(t time.Time) (ID, error) {
	ms, nanoseconds, err := unixTime(t)
	if err != nil {
		return 0, err
	}
	detail := newDetail()
	var id C.uint64_t
	status := C.polyflake_layout_max_id(l.c(), C.int64_t(ms), C.uint32_t(nanoseconds), &id, &detail)
	runtime.KeepAlive(l.data)
	return ID(id), check(status, &detail)
}

// Decoded is an ID taken apart. It is a value that compares with ==.
type Decoded struct {
	// ID is the ID.
	ID ID
	// Time is the start of the ID's tick, in UTC.
	Time time.Time
	// TimestampMs is Time in Unix ms.
	TimestampMs int64
	// Ticks is how many ticks after the epoch that is.
	Ticks uint64
	// Node is all node fields joined, from the highest to the lowest.
	Node uint64
	// Sequence is the number within the tick.
	Sequence uint64
	// Layout is the layout that it was decoded by.
	Layout Layout
	// The node fields' values, from the highest down: an array, since a map does not compare.
	fields [C.POLYFLAKE_MAX_NODE_FIELDS]uint64
}

// Fields are the node fields' values by name.
func (d Decoded) Fields() map[string]uint64 {
	fields := map[string]uint64{}
	d.eachField(func(name string, value uint64) { fields[name] = value })
	return fields
}

// String is the ID, its time, its node fields and its sequence.
func (d Decoded) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d: %s", d.ID, d.Time.Format("2006-01-02T15:04:05.000Z07:00"))
	d.eachField(func(name string, value uint64) { fmt.Fprintf(&text, " %s %d", name, value) })
	fmt.Fprintf(&text, " sequence %d", d.Sequence)
	return text.String()
}

func (d Decoded) eachField(see func(name string, value uint64)) {
	n := 0
	for _, field := range d.Layout.properties().fields {
		if field.IsNode {
			see(field.Name, d.fields[n])
			n++
		}
	}
}

func utc(unixMs C.uint64_t) time.Time {
	return time.UnixMilli(int64(unixMs)).UTC()
}
