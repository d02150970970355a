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

// Code is the permanent number of an error, the same in every language of Polyflake. The constants are errors
// themselves, for [errors.Is]:
//
//	if errors.Is(err, polyflake.ErrClockMovedBackwards) { ... }
type Code int32

const (
	// ErrInvalidLayout is a layout that cannot work.
	ErrInvalidLayout Code = C.POLYFLAKE_INVALID_LAYOUT
	// ErrUnknownLayout says that no preset has that name; the message lists near ones.
	ErrUnknownLayout Code = C.POLYFLAKE_UNKNOWN_LAYOUT
	// ErrInvalidNode is a node field missing, unknown or out of range.
	ErrInvalidNode Code = C.POLYFLAKE_INVALID_NODE
	// ErrInvalidOption is any other option's value or name.
	ErrInvalidOption Code = C.POLYFLAKE_INVALID_OPTION
	// ErrInvalidID is an ID outside its layout, or a text that is no ID.
	ErrInvalidID Code = C.POLYFLAKE_INVALID_ID
	// ErrTimeOutOfRange is an instant before the layout's epoch or past its end.
	ErrTimeOutOfRange Code = C.POLYFLAKE_TIME_OUT_OF_RANGE
	// ErrClockMovedBackwards says that the clock stands further back than [MaxBackward] allows. Nothing was issued; it
	// recovers by itself when the clock has caught up.
	ErrClockMovedBackwards Code = C.POLYFLAKE_CLOCK_MOVED_BACKWARDS
	// ErrSequenceExhausted says that no ID came free within the time the call may wait.
	ErrSequenceExhausted Code = C.POLYFLAKE_SEQUENCE_EXHAUSTED
	// ErrForked is a Snowflake used in a child of the process that made it.
	ErrForked Code = C.POLYFLAKE_FORKED
	// ErrClockFailed says that the caller's clock returned an error, which [errors.Is] and [errors.As] find too.
	ErrClockFailed Code = C.POLYFLAKE_CLOCK_FAILED
	// ErrStateFile is a state file that cannot be opened, made or synced, is damaged or of another layout or node, was
	// renamed, deleted or replaced, or is far ahead of the clock; see [State].
	ErrStateFile Code = C.POLYFLAKE_STATE_FILE
	// ErrLeaseUnavailable says that no worker is free, or the store cannot be reached.
	ErrLeaseUnavailable Code = C.POLYFLAKE_LEASE_UNAVAILABLE
	// ErrLeaseLost says that the lease ran out; nothing more is issued on it.
	ErrLeaseLost Code = C.POLYFLAKE_LEASE_LOST
	// ErrClosed is a Snowflake used after its Close, or closed while the call waited.
	ErrClosed Code = C.POLYFLAKE_CLOSED
	// ErrInternal is a bug in Polyflake, never the caller's fault.
	ErrInternal Code = C.POLYFLAKE_INTERNAL
)

// Name is the error's permanent name, such as "clock_moved_backwards".
func (c Code) Name() string {
	return C.GoString(C.polyflake_status_name(C.polyflake_status(c)))
}

// Error says what the code means, without any value.
func (c Code) Error() string {
	return "polyflake: " + c.words()
}

func (c Code) words() string {
	return c.Name() + ": " + C.GoString(C.polyflake_status_message(C.polyflake_status(c)))
}

// Error is every error that Polyflake decides on, for [errors.As]. A value of a wrong type, which only
// [ID.Scan] and the JSON methods can meet, is an ordinary error instead.
type Error struct {
	// Code tells which error it is.
	Code Code
	// Name is the code's permanent name, such as "clock_moved_backwards".
	Name string
	// Message says what is wrong and what would fit; it begins with the name.
	Message string
	// BehindMs is by how many ms the clock stands behind the last ID, with [ErrClockMovedBackwards]; else 0.
	BehindMs uint64
	// RetryAfterMs is after how many ms of the clock the next ID can come, with [ErrClockMovedBackwards] and
	// [ErrSequenceExhausted]; else 0.
	RetryAfterMs uint64
	// Err is what the caller's clock returned, with [ErrClockFailed]; else nil.
	Err error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return "polyflake: " + e.Message + ": " + e.Err.Error()
	}
	return "polyflake: " + e.Message
}

// Is makes errors.Is(err, ErrClosed) and the like work.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap gives Err.
func (e *Error) Unwrap() error {
	return e.Err
}

// Behind is BehindMs as a duration; where that is more than a duration holds (292 years), the longest one.
func (e *Error) Behind() time.Duration {
	return duration(e.BehindMs)
}

// RetryAfter is RetryAfterMs as a duration; where that is more than a duration holds (292 years), the longest one.
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

// check turns a status into an error, nil for POLYFLAKE_OK.
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

// failed frees a failure and turns it into an error, nil for NULL. Where the caller's clock panicked, the panic goes
// on here, in the goroutine that made the call.
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
