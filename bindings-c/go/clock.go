package polyflake

// #include "shim.h"
import "C"

import (
	"runtime/cgo"
	"time"
)

type clock = func() (time.Time, error)

// clockFailure is the error or panic of a custom clock that returned no time.
type clockFailure struct {
	err      error
	panicked bool
	panic    any
}

// polyflakeReadGoClock reads the clock behind a [cgo.Handle]. It returns 0, or the handle of a [clockFailure]. It
// recovers panics, since none may cross the library; [failed] panics again with the same value.
//
//export polyflakeReadGoClock
func polyflakeReadGoClock(handle C.uintptr_t, unixMs *C.int64_t) (failure C.uintptr_t) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if value := recover(); value != nil {
			failure = C.uintptr_t(cgo.NewHandle(clockFailure{panicked: true, panic: value}))
		} else {
			C.polyflake_go_clock_has_gone() // runtime.Goexit
		}
	}()
	now, err := cgo.Handle(handle).Value().(clock)()
	returned = true
	if err == nil {
		var ms int64
		if ms, _, err = unixTime(now); err == nil {
			*unixMs = C.int64_t(ms)
			return 0
		}
	}
	return C.uintptr_t(cgo.NewHandle(clockFailure{err: err}))
}

// unixTime converts a time to Unix ms, rounded down, and the remaining nanoseconds.
func unixTime(t time.Time) (ms int64, nanoseconds uint32, err error) {
	ms = t.UnixMilli()
	if time.UnixMilli(ms).Unix() != t.Unix() { // it overflowed
		return 0, 0, newError(ErrTimeOutOfRange, ErrTimeOutOfRange.words()+": "+t.String())
	}
	return ms, uint32(t.Nanosecond() % int(time.Millisecond)), nil
}
