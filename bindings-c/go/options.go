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

// Option is an option of [New]. A later value replaces an earlier one.
type Option func(*settings) error

type settings struct {
	options  *C.polyflake_options
	clock    clock
	isLeased bool
}

// Set sets an option by name to a string, such as a value from a configuration file. Names and values are the same in
// every language. The names are layout, node, max_backward_ms, max_ahead_ms, max_wait_ms, sequence_start, clock, state
// and lease. [New] returns [ErrInvalidOption] for any other name.
//
//	polyflake.Set("node", "datacenter=1,worker=7")
func Set(name, value string) Option {
	return func(s *settings) error {
		if name == "lease" {
			s.isLeased = true
			listen()
		}
		return setText(s.options, name, value)
	}
}

func setText(options *C.polyflake_options, name, value string) error {
	detail := newDetail()
	text, length := cBytes(value)
	return check(C.polyflake_options_set_bytes(options, cText(name), text, length, &detail), &detail)
}

// Node sets the node, as one integer for all node bits. No two processes may use the same node at the same time, unless
// they share a state file: see [State].
//
// [Node] or [NodeFields] is required unless the layout has no node field, because a default node would cause
// duplicates.
func Node(node uint64) Option {
	return Set("node", strconv.FormatUint(node, 10))
}

// NodeFields sets the node by its fields, as an alternative to [Node]. Every node field of the layout must be present.
// An empty map sets no node.
//
//	polyflake.NodeFields(map[string]uint64{"datacenter": 1, "worker": 7})
func NodeFields(fields map[string]uint64) Option {
	return func(s *settings) error {
		if len(fields) > 0 {
			// Setting a whole node discards the fields of an earlier option; the first field below then replaces that
			// node.
			if err := Node(0)(s); err != nil {
				return err
			}
		}
		// Sorted, so that the same mistake always gives the same message.
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

// WithLayout sets the layout: the name of a preset, a layout as text, or a [Layout]. The default is "twitter".
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

// MaxBackward (max_backward_ms) sets how far the clock may step back while IDs are still issued from the rest of the
// last tick. After a larger step back, calls return [ErrClockMovedBackwards]. The value must be a whole number of
// milliseconds; the default is 1 s. With 0, no step back of a tick or more is tolerated.
func MaxBackward(d time.Duration) Option {
	return Set("max_backward_ms", milliseconds(d))
}

// MaxAhead (max_ahead_ms) sets how far IDs may run ahead of the clock to serve a burst. The value must be a whole
// number of milliseconds; the default is 0.
func MaxAhead(d time.Duration) Option {
	return Set("max_ahead_ms", milliseconds(d))
}

// MaxWait (max_wait_ms) sets the longest time that [Snowflake.NextID] waits, and that a batch waits between two runs of
// IDs, in real time. The value must be a whole number of milliseconds; the default is a tick + 1 s. With 0, calls never
// wait. The time is counted from when the Snowflake last served a waiting goroutine: as long as the queue moves, no
// call fails. [Snowflake.NextIDContext] limits the wait of a single call.
func MaxWait(d time.Duration) Option {
	return Set("max_wait_ms", milliseconds(d))
}

// milliseconds keeps a fraction, so that the library rejects it instead of using a rounded value.
func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

// SequenceStart sets the first sequence number of a fresh tick: "spread" (the default), so that IDs issued slowly do
// not all end in the same bits, or "zero".
func SequenceStart(start string) Option {
	return Set("sequence_start", start)
}

// SteadyClock hides backward steps of up to [MaxBackward] in the wall clock: while the wall clock is behind a time that
// was already seen, time advances at half the monotonic rate until the wall clock has caught up.
func SteadyClock() Option {
	return Set("clock", "steady")
}

// State sets the path of a state file. All processes on this host that name the same file share the node, at the same
// time or one after another: a process that restarts, even after it was killed, continues after the last ID. The file
// is created if it does not exist. It must be on a local file system, and an absolute path is best. The path may
// consist of any bytes. All Snowflakes in a process with the same node must name the same file, or none.
//
// [New] returns [ErrStateFile] if the file cannot be used: if it belongs to another layout or node, if it is damaged,
// or if its cursor is more than a minute ahead of the clock (see [ResetState]). The file is never overwritten. Calls
// for an ID return [ErrStateFile] once the file has been renamed, deleted or replaced. Creating the file takes about a
// second, because its cursor starts above every ID that a process with an older, deleted file may still issue. A custom
// [Clock] must advance by that much before any ID is issued.
//
//	polyflake.New(polyflake.Node(7), polyflake.State("/var/lib/app/polyflake.state"))
func State(path string) Option {
	return Set("state", path)
}

// ResetState sets the cursor of a state file back to the system clock. Use it when a wrong clock has moved the cursor
// far into the future. First stop the processes that use the file: in any process that is still running, calls return
// [ErrStateFile] until it restarts. The risk is that IDs issued ahead of the clock are issued again once the clock
// catches up. A file whose cursor is not ahead of the clock is left unchanged.
//
// It returns [ErrStateFile] if the file does not exist or cannot be used.
func ResetState(path string) error {
	detail := newDetail()
	text, length := cBytes(path)
	return check(C.polyflake_reset_state(text, length, &detail), &detail)
}

// Clock sets a custom clock, which takes precedence over any built-in one; nil sets none. The Snowflake then shares no
// cursor, unless it has a state file ([State]): another Snowflake with the same layout and node can repeat its IDs.
//
// Goroutines that ask for an ID call now, possibly several at once. With a state file, [New] calls it too. While
// goroutines wait for an ID, the first of them calls now on behalf of all. The clock may itself take IDs. If it returns
// an error, the call returns [ErrClockFailed], which wraps that error; if it panics, the call panics. It must not call
// [runtime.Goexit], as the FailNow and Fatal methods of tests do. A clock that refers to its own Snowflake keeps the
// Snowflake from being freed until [Snowflake.Close].
func Clock(now func() (time.Time, error)) Option {
	return func(s *settings) error {
		s.clock = now
		return nil
	}
}
