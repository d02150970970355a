package polyflake

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"math"
	"runtime/cgo"
	"time"
	"unsafe"
)

// Code is the permanent number of an error, the same in every language. The constants are errors themselves, for
// [errors.Is]:
//
//	if errors.Is(err, polyflake.ErrClockMovedBackwards) { ... }
type Code int32

const (
	// ErrInvalidLayout means that a layout is invalid.
	ErrInvalidLayout Code = C.POLYFLAKE_INVALID_LAYOUT
	// ErrUnknownLayout means that no preset has this name. The message lists similar ones.
	ErrUnknownLayout Code = C.POLYFLAKE_UNKNOWN_LAYOUT
	// ErrInvalidNode means that a node field is missing, unknown or out of range.
	ErrInvalidNode Code = C.POLYFLAKE_INVALID_NODE
	// ErrInvalidOption means that the name or value of any other option is invalid.
	ErrInvalidOption Code = C.POLYFLAKE_INVALID_OPTION
	// ErrInvalidID means that an ID does not fit the layout, or that a string is not an ID.
	ErrInvalidID Code = C.POLYFLAKE_INVALID_ID
	// ErrTimeOutOfRange means that a time is before the layout's epoch or past its end.
	ErrTimeOutOfRange Code = C.POLYFLAKE_TIME_OUT_OF_RANGE
	// ErrClockMovedBackwards means that the clock has stepped back by more than [MaxBackward] allows. Nothing was
	// issued. The Snowflake recovers on its own once the clock has caught up.
	ErrClockMovedBackwards Code = C.POLYFLAKE_CLOCK_MOVED_BACKWARDS
	// ErrSequenceExhausted means that no ID became available within the time the call may wait.
	ErrSequenceExhausted Code = C.POLYFLAKE_SEQUENCE_EXHAUSTED
	// ErrForked means that a parent process created the Snowflake or the Sequences.
	ErrForked Code = C.POLYFLAKE_FORKED
	// ErrClockFailed means that the custom clock returned an error, which [errors.Is] and [errors.As] find too.
	ErrClockFailed Code = C.POLYFLAKE_CLOCK_FAILED
	// ErrStateFile means that a state file cannot be opened, created or synced, is damaged, belongs to another layout
	// or node, was renamed, deleted or replaced, or is far ahead of the clock; see [State].
	ErrStateFile Code = C.POLYFLAKE_STATE_FILE
	// ErrLeaseUnavailable means that no node is free to lease, that another process holds the lease of the [Sequences],
	// or that the store cannot be reached. The message says which.
	ErrLeaseUnavailable Code = C.POLYFLAKE_LEASE_UNAVAILABLE
	// ErrLeaseLost means that the lease has expired and the store has not renewed it in the time the call may wait. The
	// Snowflake or the [Sequences] recover on their own once the store renews the lease or, for a Snowflake, assigns
	// another node.
	ErrLeaseLost Code = C.POLYFLAKE_LEASE_LOST
	// ErrClosed means that the Snowflake, Counter or Sequences was closed, before the call or while it waited.
	ErrClosed Code = C.POLYFLAKE_CLOSED
	// ErrCounterUnavailable means that a counter or a section of [Sequences] has no number: the store refuses, it
	// handed out none in the time the call may wait, or the numbers have run out.
	ErrCounterUnavailable Code = C.POLYFLAKE_COUNTER_UNAVAILABLE
	// ErrInternal means that a bug in Polyflake was detected; it is never the caller's fault.
	ErrInternal Code = C.POLYFLAKE_INTERNAL
)

// Name returns the permanent name of the error, such as "clock_moved_backwards".
func (c Code) Name() string {
	return C.GoString(C.polyflake_status_name(C.polyflake_status(c)))
}

// Error returns the meaning of the code, without values.
func (c Code) Error() string {
	return "polyflake: " + c.words()
}

func (c Code) words() string {
	return c.Name() + ": " + C.GoString(C.polyflake_status_message(C.polyflake_status(c)))
}

// Error is the type of every error with a [Code], for [errors.As]. Only values of the wrong type, in [ID.Scan] and the
// JSON methods, are reported as ordinary errors.
type Error struct {
	// Code identifies the error.
	Code Code
	// Name is the permanent name of the code, such as "clock_moved_backwards".
	Name string
	// Message says what is wrong and what would be valid. It begins with the name.
	Message string
	// BehindMs is how many ms the clock is behind the last ID, less [MaxAhead], for [ErrClockMovedBackwards]; otherwise
	// 0.
	BehindMs uint64
	// RetryAfterMs is how many ms the clock must advance before the next ID, for [ErrClockMovedBackwards] and
	// [ErrSequenceExhausted]; how many ms remain until the store is queried again, for [ErrLeaseLost]; otherwise 0.
	RetryAfterMs uint64
	// Err is the error that the custom clock returned, for [ErrClockFailed]; otherwise nil.
	Err error
}

// Error returns "polyflake: ", the Message, and then Err's message if there is an Err.
func (e *Error) Error() string {
	if e.Err != nil {
		return "polyflake: " + e.Message + ": " + e.Err.Error()
	}
	return "polyflake: " + e.Message
}

// Is reports whether target is the Code of this error, so that errors.Is(err, ErrClosed) works.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap returns Err.
func (e *Error) Unwrap() error {
	return e.Err
}

// Behind returns BehindMs as a duration, capped at the longest possible (292 years).
func (e *Error) Behind() time.Duration {
	return duration(e.BehindMs)
}

// RetryAfter returns RetryAfterMs as a duration, capped at the longest possible (292 years).
func (e *Error) RetryAfter() time.Duration {
	return duration(e.RetryAfterMs)
}

func duration(ms uint64) time.Duration {
	const longest = math.MaxInt64 / uint64(time.Millisecond)
	return time.Duration(min(ms, longest)) * time.Millisecond
}

func newError(code Code, message string) *Error {
	return &Error{Code: code, Name: code.Name(), Message: message}
}

func errClosed() error {
	return newError(ErrClosed, ErrClosed.words())
}

func newDetail() C.polyflake_detail {
	return C.polyflake_detail{size: C.sizeof_polyflake_detail}
}

// check turns a status into an error, which is nil for POLYFLAKE_OK.
func check(status C.polyflake_status, detail *C.polyflake_detail) error {
	if status == C.POLYFLAKE_OK {
		return nil
	}
	return detailed(status, detail)
}

func detailed(status C.polyflake_status, detail *C.polyflake_detail) *Error {
	e := newError(Code(status), goText(detail.message[:]))
	e.BehindMs = uint64(detail.behind_ms)
	e.RetryAfterMs = uint64(detail.retry_after_ms)
	return e
}

// failed frees a failure and turns it into an error, which is nil for NULL. If the custom clock panicked, failed panics
// again, in the goroutine that made the call.
func failed(failure *C.polyflake_go_failure) error {
	if failure == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(failure))
	e := detailed(failure.status, &failure.detail)
	if failure.clock_failure != 0 {
		handle := cgo.Handle(failure.clock_failure)
		fromClock := handle.Value().(clockFailure)
		handle.Delete()
		if fromClock.panicked {
			panic(fromClock.panic)
		}
		e.Err = fromClock.err
	}
	return e
}
