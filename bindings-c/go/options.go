package polyflake

// #cgo noescape polyflake_options_set_bytes
// #cgo nocallback polyflake_options_set_bytes
// #cgo noescape polyflake_options_set_node_field
// #cgo nocallback polyflake_options_set_node_field
// #cgo noescape polyflake_options_set_layout
// #cgo nocallback polyflake_options_set_layout
// #cgo noescape polyflake_reset_state
// #cgo nocallback polyflake_reset_state
// #include <polyflake.h>
import "C"

import (
	"maps"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// Option is one of the options of [New]. One that is given twice takes the later value.
type Option func(*settings) error

type settings struct {
	options *C.polyflake_options
	clock   clock
}

// Set sets an option by its name and its value's text, as every language of Polyflake has them: for values that come
// from a configuration. The names are layout, node, max_backward_ms, max_ahead_ms, max_wait_ms, sequence_start,
// clock and state; another one gives [ErrInvalidOption].
//
//	polyflake.Set("node", "datacenter=1,worker=7")
func Set(name, value string) Option {
	return func(s *settings) error {
		detail := newDetail()
		text, length := cBytes(value)
		return check(C.polyflake_options_set_bytes(s.options, cText(name), text, length, &detail), &detail)
	}
}

// Node gives the node as one integer for all node bits. No two processes may use the same node at the same time,
// unless they share a state file: see [State].
//
// [Node] or [NodeFields] is required unless the layout has no node field: a default node is how duplicates happen.
func Node(node uint64) Option {
	return Set("node", strconv.FormatUint(node, 10))
}

// NodeFields gives the node field by field, in place of [Node]; every node field of the layout must be there. An empty
// map gives no node.
//
//	polyflake.NodeFields(map[string]uint64{"datacenter": 1, "worker": 7})
func NodeFields(fields map[string]uint64) Option {
	return func(s *settings) error {
		if len(fields) > 0 {
			// A whole node makes the library forget the fields of an earlier option; the first field replaces it.
			if err := Node(0)(s); err != nil {
				return err
			}
		}
		// In order, so that the same mistake always gives the same message.
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			value := cText(strconv.FormatUint(fields[field], 10))
			detail := newDetail()
			status := C.polyflake_options_set_node_field(s.options, cText(field), value, &detail)
			if err := check(status, &detail); err != nil {
				return err
			}
		}
		return nil
	}
}

// WithLayout gives the layout: a preset's name, a layout's text, or a [Layout]. "twitter" where it is not given.
func WithLayout[L string | Layout](layout L) Option {
	switch layout := any(layout).(type) {
	case Layout:
		return func(s *settings) error {
			detail := newDetail()
			defer runtime.KeepAlive(layout.data)
			return check(C.polyflake_options_set_layout(s.options, layout.c(), &detail), &detail)
		}
	default:
		return Set("layout", layout.(string))
	}
}

// MaxBackward (max_backward_ms) is how far the clock may step back and IDs still be issued, counting on in the last
// tick; a step back by more gives [ErrClockMovedBackwards]. Whole milliseconds, 1 s where it is not given; 0 refuses
// every step back of a tick or more.
func MaxBackward(d time.Duration) Option {
	return Set("max_backward_ms", milliseconds(d))
}

// MaxAhead (max_ahead_ms) is how far IDs may run ahead of the clock to serve a burst. Whole milliseconds, 0 where it
// is not given.
func MaxAhead(d time.Duration) Option {
	return Set("max_ahead_ms", milliseconds(d))
}

// MaxWait (max_wait_ms) is the longest that [Snowflake.NextID] waits, and a batch between two of its runs, in real
// time. Whole milliseconds, a tick + 1 s where it is not given; 0 never waits.
func MaxWait(d time.Duration) Option {
	return Set("max_wait_ms", milliseconds(d))
}

// milliseconds keeps a fraction, so that the library refuses it instead of IDs coming by a rounded bound.
func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

// SequenceStart is the first sequence of a fresh tick: "spread", as where it is not given, so that IDs issued slowly
// do not all end in the same bits, or "zero".
func SequenceStart(start string) Option {
	return Set("sequence_start", start)
}

// SteadyClock takes the wall clock when it moves forward, and while it stands behind what was already seen, monotonic
// time at half rate until the wall clock has caught up: within [MaxBackward], steps back never show.
func SteadyClock() Option {
	return Set("clock", "steady")
}

// State gives the path of a file, any bytes, through which all processes of this host that name it share the node, at
// once or one after the other: a restart goes on after the last ID, and so does one after a process was killed. The
// file is made where there is none; it lies on a local file system, best by an absolute path. All Snowflakes of a node
// in a process name the same file or none.
//
// [New] then gives [ErrStateFile] where the file cannot be used: one of another layout or node, a damaged one, or one
// whose cursor stands more than a minute ahead of the clock, for which see [ResetState]. It is never overwritten. An ID
// gives [ErrStateFile] where the file was renamed, deleted or replaced. Making a new file takes about a second, for its
// cursor starts above all that a holder of an older one may still issue; with a [Clock] of the caller's, that clock must
// have moved on by as much before there are IDs.
//
//	polyflake.New(polyflake.Node(7), polyflake.State("/var/lib/app/polyflake.state"))
func State(path string) Option {
	return Set("state", path)
}

// ResetState sets a state file's cursor back to the system clock, where it stands ahead of it: the way out when a clock
// that was wrong has moved a cursor far into the future. Stop the processes that use the file first: those that go on
// are refused with [ErrStateFile] until they restart. The risk: IDs that were issued ahead of the clock are issued
// again when the clock gets there. A file whose cursor is not ahead of the clock is left as it is.
//
// It gives [ErrStateFile], also where there is no such file.
func ResetState(path string) error {
	detail := newDetail()
	text, length := cBytes(path)
	return check(C.polyflake_reset_state(text, length, &detail), &detail)
}

// Clock gives the Snowflake a clock of the caller's own, which counts whatever built-in one is named before or after
// it; nil gives none. The Snowflake is then on its own, unless it has a state file ([State]): another one with an
// equal layout and node can repeat its IDs.
//
// now may be called by several goroutines at once, in the goroutine that asks for an ID, and with a state file in the
// one that calls [New]. An error of it comes out of that call with [ErrClockFailed] around it, and a panic goes on in
// that call. It must not call [runtime.Goexit], as the FailNow and Fatal methods of tests do. A clock that refers to
// its Snowflake keeps it from being freed until [Snowflake.Close].
func Clock(now func() (time.Time, error)) Option {
	return func(s *settings) error {
		s.clock = now
		return nil
	}
}
