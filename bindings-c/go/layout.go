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

// Layout is the meaning of an ID's bits: the fields from the highest bit down, the epoch, and the length of a tick. Get
// a Layout from [ParseLayout]. Layouts are values: they can be compared with == and used as map keys, and they print
// and marshal as text. Any number of goroutines may use a Layout.
//
// The zero Layout has no fields, and every function that takes a layout returns an error for it.
type Layout struct {
	// Equal layouts have the same pointer; see intern.
	data *layoutData
}

type layoutData struct {
	c      *C.polyflake_layout
	text   string
	info   C.polyflake_layout_info
	fields []Field
	// The positions of the same fields in an ID, for Decode. The node fields come highest first.
	timestamp, sequence bits
	nodes               []bits
}

type bits struct {
	mask         uint64
	shift, width uint8
}

// nodeMask returns a mask of all node fields.
func (l Layout) nodeMask() (mask ID) {
	for _, node := range l.data.nodes {
		mask |= ID(node.mask)
	}
	return mask
}

func (b bits) of(id ID) uint64 {
	return (uint64(id) & b.mask) >> (b.shift & 63)
}

// Field is a field of a [Layout].
type Field struct {
	// Name is "timestamp", "sequence", or the name of a node field.
	Name string
	// Bits is the width of the field.
	Bits int
	// Shift is the number of bits below the field.
	Shift int
	// Mask selects the field's bits within the ID.
	Mask uint64
	// IsNode is false for the timestamp and the sequence.
	IsNode bool
}

// ParseLayout parses a layout: the name of a preset, such as "discord", or a string such as
//
//	timestamp:41|worker:10|sequence:12@1288834974657/1ms
//
// The string lists the fields as FIELD:BITS, joined by |, followed by @ and the epoch in Unix ms, then / and the tick
// as Nms or Ns.
//
// It returns [ErrUnknownLayout] if no preset has this name, and [ErrInvalidLayout] for an invalid layout.
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

// Presets returns the names of the preset layouts, starting with the default.
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
		found := Field{
			Name:   goText(field.name[:]),
			Bits:   int(field.bits),
			Shift:  int(field.shift),
			Mask:   uint64(field.mask),
			IsNode: field.is_node != 0,
		}
		data.fields = append(data.fields, found)
		where := bits{found.Mask, uint8(found.Shift), uint8(found.Bits)}
		switch {
		case found.IsNode:
			data.nodes = append(data.nodes, where)
		case found.Name == "timestamp":
			data.timestamp = where
		default:
			data.sequence = where
		}
	}
	return data, nil
}

func layoutText(c *C.polyflake_layout) (string, error) {
	var text [C.POLYFLAKE_LAYOUT_TEXT_SIZE]C.char
	detail := newDetail()
	err := check(C.polyflake_layout_text(c, &text[0], C.size_t(len(text)), &detail), &detail)
	return goText(text[:]), err
}

// Maps the text of a layout to its weak.Pointer[layoutData].
var layouts sync.Map

// intern returns the only live layoutData with this text, which is data itself if there was no other.
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

// c is NULL for the zero Layout, which the library rejects. Keep data alive until the call has returned.
func (l Layout) c() *C.polyflake_layout {
	return l.properties().c
}

func (l Layout) properties() *layoutData {
	if l.data == nil {
		return &noLayout
	}
	return l.data
}

// String returns the layout as text, which [ParseLayout] reads back.
func (l Layout) String() string {
	return l.properties().text
}

// MarshalText returns the layout as text.
func (l Layout) MarshalText() ([]byte, error) {
	return []byte(l.String()), nil
}

// UnmarshalText parses a layout. It returns the same errors as [ParseLayout].
func (l *Layout) UnmarshalText(text []byte) error {
	layout, err := ParseLayout(string(text))
	if err == nil {
		*l = layout
	}
	return err
}

// Fields returns all fields, highest first, including the timestamp and the sequence.
func (l Layout) Fields() []Field {
	return slices.Clone(l.properties().fields)
}

// Epoch returns the start of tick 0, in UTC.
func (l Layout) Epoch() time.Time {
	return utc(l.properties().info.epoch_ms)
}

// EpochMs returns the start of tick 0, in Unix ms.
func (l Layout) EpochMs() int64 {
	return int64(l.properties().info.epoch_ms)
}

// TickMs returns the length of a tick, in ms.
func (l Layout) TickMs() uint64 {
	return uint64(l.properties().info.tick_ms)
}

// EndsAt returns the layout's last instant, in UTC. A [time.Time] can hold it for any layout, but cannot be marshaled
// past the year 9999; "mastodon" ends in 10889.
func (l Layout) EndsAt() time.Time {
	return utc(l.properties().info.ends_at_ms)
}

// EndsAtMs returns the layout's last instant, in Unix ms.
func (l Layout) EndsAtMs() int64 {
	return int64(l.properties().info.ends_at_ms)
}

// IDsPerTick returns how many IDs one node can issue in a tick.
func (l Layout) IDsPerTick() uint64 {
	return uint64(l.properties().info.ids_per_tick)
}

// Nodes returns how many different nodes the layout allows.
func (l Layout) Nodes() uint64 {
	return uint64(l.properties().info.nodes)
}

// TotalBits returns the width of all fields together.
func (l Layout) TotalBits() int {
	return int(l.properties().info.total_bits)
}

// TimestampBits returns the width of the timestamp.
func (l Layout) TimestampBits() int {
	return int(l.properties().info.timestamp_bits)
}

// TimestampShift returns the number of bits below the timestamp.
func (l Layout) TimestampShift() int {
	return int(l.properties().info.timestamp_shift)
}

// SequenceBits returns the width of the sequence.
func (l Layout) SequenceBits() int {
	return int(l.properties().info.sequence_bits)
}

// SequenceShift returns the number of bits below the sequence.
func (l Layout) SequenceShift() int {
	return int(l.properties().info.sequence_shift)
}

// NodeBits returns the width of all node fields together.
func (l Layout) NodeBits() int {
	return int(l.properties().info.node_bits)
}

// Decode decodes an ID. It returns [ErrInvalidID] if the ID has bits outside the layout.
func (l Layout) Decode(id ID) (decoded Decoded, err error) {
	data := l.properties()
	// The zero Layout has 0 bits, and no ID fits it.
	if uint64(id)>>data.info.total_bits != 0 || data.c == nil {
		return decoded, l.refuse(id)
	}
	ticks := data.timestamp.of(id)
	ms := int64(uint64(data.info.epoch_ms) + ticks*uint64(data.info.tick_ms))
	decoded.ID = id
	decoded.Time = time.UnixMilli(ms).UTC()
	decoded.TimestampMs = ms
	decoded.Ticks = ticks
	for n, field := range data.nodes {
		value := field.of(id)
		decoded.fields[n] = value
		decoded.Node = decoded.Node<<(field.width&63) | value
	}
	decoded.Sequence = data.sequence.of(id)
	decoded.Layout = l
	return decoded, nil
}

// refuse returns the library's error for an ID that does not fit the layout.
func (l Layout) refuse(id ID) error {
	detail := newDetail()
	decoded := C.polyflake_decoded{size: C.sizeof_polyflake_decoded}
	err := check(C.polyflake_layout_decode(l.c(), C.uint64_t(id), &decoded, &detail), &detail)
	runtime.KeepAlive(l.data)
	return err
}

// Compose builds an ID from a time, which is rounded down to its tick, a whole node, and a sequence number. Nothing
// prevents it from repeating an ID that was already issued. For a layout without node fields, use node 0.
//
// It returns [ErrTimeOutOfRange], [ErrInvalidNode] or [ErrInvalidOption] if the time, the node or the sequence number
// does not fit the layout.
func (l Layout) Compose(t time.Time, node, sequence uint64) (ID, error) {
	return l.compose(t, Node(node), sequence)
}

// ComposeFields is like [Layout.Compose], with the node given by its fields.
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

// MinID returns the lowest ID at or after a time, for range queries:
//
//	WHERE id BETWEEN layout.MinID(from) AND layout.MaxID(to)
//
// It returns [ErrTimeOutOfRange] if the layout has no ID for that time, and [ErrInvalidLayout] if a node field is above
// the timestamp.
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

// MaxID returns the highest ID at or before a time. It returns the same errors as [Layout.MinID].
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

// Decoded holds the parts of an ID. It can be compared with ==.
type Decoded struct {
	// ID is the ID.
	ID ID
	// Time is the start of the ID's tick, in UTC.
	Time time.Time
	// TimestampMs is Time in Unix ms.
	TimestampMs int64
	// Ticks is the number of ticks since the epoch.
	Ticks uint64
	// Node is the value of all node bits together, highest field first.
	Node uint64
	// Sequence is the sequence number within the tick.
	Sequence uint64
	// Layout is the layout that the ID was decoded with.
	Layout Layout
	// The values of the node fields, highest first. An array, because maps cannot be compared.
	fields [C.POLYFLAKE_MAX_NODE_FIELDS]uint64
}

// Fields returns the values of the node fields by name.
func (d Decoded) Fields() map[string]uint64 {
	fields := map[string]uint64{}
	d.eachField(func(name string, value uint64) { fields[name] = value })
	return fields
}

// String returns the ID, its time, its node fields and its sequence number.
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
