package polyflake

// #cgo noescape polyflake_snowflake_words
// #cgo nocallback polyflake_snowflake_words
// #include <polyflake.h>
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/polyflake/polyflake/bindings-c/go/internal/counter"
)

// tick takes IDs without a C call, in the way polyflake_words describes, as long as they are in the same tick as the
// last ID. Its pointers refer to C memory. limit and node must not be used after the polyflake_snowflake is freed.
type tick struct {
	clockStart, clockKept, cursor *uint64 // cursor is nil if every ID requires a call
	limit                         *unsafe.Pointer
	epochMs, tickMs               uint64
	node                          *uint64 // in the polyflake_snowflake, like limit
	sequenceMask                  uint64
	sequenceBits, sequenceShift   uint8
	timestampShift                uint8
}

// windowMask selects the bits of clockKept that are not the time.
const windowMask = 1<<20 - 1

func newTick(c *C.polyflake_snowflake) tick {
	words := C.polyflake_words{size: C.sizeof_polyflake_words}
	if !counter.Exists || C.polyflake_snowflake_words(c, &words, nil) != C.POLYFLAKE_OK {
		return tick{}
	}
	return tick{
		clockStart:     (*uint64)(words.clock_start),
		clockKept:      (*uint64)(words.clock_kept),
		cursor:         (*uint64)(words.cursor),
		limit:          (*unsafe.Pointer)(unsafe.Pointer(words.limit)),
		epochMs:        uint64(words.epoch_ms),
		tickMs:         uint64(words.tick_ms),
		node:           (*uint64)(words.node),
		sequenceMask:   1<<words.sequence_bits - 1,
		sequenceBits:   uint8(words.sequence_bits),
		sequenceShift:  uint8(words.sequence_shift),
		timestampShift: uint8(words.timestamp_shift),
	}
}

// next returns the next ID, or 0 if that requires a C call. The order of the loads matters.
func (t *tick) next() ID {
	if t.cursor == nil {
		return 0
	}
	start := atomic.LoadUint64(t.clockStart)
	kept := atomic.LoadUint64(t.clockKept)
	window := kept & windowMask
	if window == 0 || counter.Now()-start >= window {
		return 0
	}
	return t.nextAt(kept >> 20)
}

// nextAt is next at the given time. All shifts are below 64; the masks tell the compiler so.
func (t *tick) nextAt(nowMs uint64) ID {
	last := atomic.LoadUint64(t.cursor)
	slot := last + 1
	ticks := slot >> (t.sequenceBits & 63)
	if nowMs-(ticks*t.tickMs+t.epochMs) >= t.tickMs ||
		last >= atomic.LoadUint64((*uint64)(atomic.LoadPointer(t.limit))) {
		return 0
	}
	node := atomic.LoadUint64(t.node) // after the limit, because a lease may change it
	if !atomic.CompareAndSwapUint64(t.cursor, last, slot) {
		return 0
	}
	return ID(ticks<<(t.timestampShift&63) | (slot&t.sequenceMask)<<(t.sequenceShift&63) | node)
}
