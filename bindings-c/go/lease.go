package polyflake

// #include "shim.h"
import "C"

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Lease leases the node from a store that all processes can reach, such as "redis://host/0". [Node] is then optional.
// [NodeFields] narrows the choice; if the whole node is set, exactly that node is leased.
//
// [New] waits for a node, for at most the wait time set in the address (35 s by default: the TTL plus 5 s), and returns
// [ErrLeaseUnavailable] if none is free or the store cannot be reached. Snowflakes in one process with the same
// address, layout and node share one lease. While the store cannot be reached, IDs are issued up to the lease's bound.
// After that, calls return [ErrLeaseLost] until the store renews the lease or assigns another node. [Snowflake.Close]
// gives the node back. Lease events are logged: see [LogLeases].
func Lease(address string) Option {
	return Set("lease", address)
}

// LeaseInfo describes a lease. Get it from [Snowflake.Lease].
type LeaseInfo struct {
	// Node is the node that the Snowflake holds, or last held.
	Node uint64
	// Bound is the time until which the Snowflake may issue IDs without a reply from the store, in UTC; the zero time
	// if it holds no node now.
	Bound time.Time
	// Left is the time left until Bound.
	Left time.Duration
	// Store is the store's address, without its password.
	Store string
	// State is "held"; "unreachable" if the Snowflake holds a node but the store did not answer the last request; or
	// "lost" if the lease has expired.
	State string
}

// Lease returns the Snowflake's lease. ok is false if the Snowflake has no lease, and after [Snowflake.Close].
func (s *Snowflake) Lease() (info LeaseInfo, ok bool) {
	c := s.open.Load()
	if c == nil || !s.isLeased {
		return LeaseInfo{}, false
	}
	read := C.polyflake_lease{size: C.sizeof_polyflake_lease}
	status := C.polyflake_go_lease(c.address, &read)
	runtime.KeepAlive(c)
	if status != C.POLYFLAKE_OK || read.state == C.POLYFLAKE_LEASE_STATE_NONE ||
		read.state == C.POLYFLAKE_LEASE_STATE_CLOSED {
		return LeaseInfo{}, false
	}
	info = LeaseInfo{
		Node: uint64(read.node), Left: duration(uint64(read.left_ms)), Store: goText(read.store[:]),
		State: C.GoString(C.polyflake_lease_state_name(read.state)),
	}
	if read.bound_ms > 0 {
		info.Bound = time.UnixMilli(int64(read.bound_ms)).UTC()
	}
	return info, true
}

var (
	leaseLogger  atomic.Pointer[slog.Logger] // nil for slog.Default
	silentLogger = slog.New(slog.DiscardHandler)
	listenOnce   sync.Once
)

// LogLeases sets the logger for events of leases, counters and sequences: a lease was acquired, lost or given back, a
// store is not answering, a clock differs from the store's, a counter has stopped. The levels are info and warn; each
// record has the attributes kind and store, and node if it is about a node. The default is [slog.Default]. With nil,
// nothing is logged.
//
// [New] also logs a warning there, once, if it detects another copy of the library in the process. Its kind is
// "copies".
func LogLeases(logger *slog.Logger) {
	if logger == nil {
		logger = silentLogger
	}
	leaseLogger.Store(logger)
}

func logger() *slog.Logger {
	if logger := leaseLogger.Load(); logger != nil {
		return logger
	}
	return slog.Default()
}

// listen starts logging lease and counter events when the first lease or counter is opened.
func listen() {
	listenOnce.Do(func() {
		C.polyflake_go_listen()
	})
}

type leaseEvent struct {
	kind, store, message string
	node                 uint64
	hasNode, isWarning   bool
	at                   time.Time
}

// keptEvents is the most events that may wait for a slow logger.
const keptEvents = 1000

var leaseEvents struct {
	sync.Mutex
	waiting []leaseEvent
	isBusy  bool
}

// polyflakeLeaseEvent is called on the library's thread, which must not be kept waiting. A goroutine does the rest, and
// exits when nothing is left to log.
//
//export polyflakeLeaseEvent
func polyflakeLeaseEvent(event *C.polyflake_lease_event) {
	e := leaseEvent{
		kind: C.GoString(event.kind), store: C.GoString(event.store), message: C.GoString(event.message),
		node: uint64(event.node), hasNode: event.has_node != 0, isWarning: event.is_warning != 0, at: time.Now(),
	}
	leaseEvents.Lock()
	defer leaseEvents.Unlock()
	if len(leaseEvents.waiting) < keptEvents {
		leaseEvents.waiting = append(leaseEvents.waiting, e)
	}
	if !leaseEvents.isBusy {
		leaseEvents.isBusy = true
		go logLeaseEvents()
	}
}

func logLeaseEvents() {
	for {
		leaseEvents.Lock()
		events := leaseEvents.waiting
		leaseEvents.waiting = nil
		leaseEvents.isBusy = len(events) > 0
		leaseEvents.Unlock()
		if len(events) == 0 {
			return
		}
		for _, e := range events {
			e.log()
		}
	}
}

func (e leaseEvent) log() {
	logger := logger()
	level := slog.LevelInfo
	if e.isWarning {
		level = slog.LevelWarn
	}
	if !logger.Enabled(context.Background(), level) {
		return
	}
	record := slog.NewRecord(e.at, level, "polyflake: "+e.message, 0)
	record.AddAttrs(slog.String("kind", e.kind), slog.String("store", e.store))
	if e.hasNode {
		record.AddAttrs(slog.Uint64("node", e.node))
	}
	_ = logger.Handler().Handle(context.Background(), record)
}
