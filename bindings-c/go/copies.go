package polyflake

// #cgo nocallback polyflake_copies_warning
// #include <polyflake.h>
import "C"

import (
	"context"
	"log/slog"
	"sync/atomic"
)

var hasWarned atomic.Bool

// warnOfCopies logs a warning, once, if the process has loaded another copy of the library, which has its own cursors.
func warnOfCopies() {
	if hasWarned.Load() {
		return
	}
	warning := C.polyflake_copies_warning()
	if warning != nil && !hasWarned.Swap(true) {
		logger().LogAttrs(context.Background(), slog.LevelWarn, "polyflake: "+C.GoString(warning),
			slog.String("kind", "copies"))
	}
}
