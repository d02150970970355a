<?php

declare(strict_types=1);

namespace Polyflake;

use FFI;
use FFI\CData;
use Generator;
use IteratorAggregate;
use LogicException;
use Polyflake\Exception\PolyflakeException;
use Polyflake\Internal\ClockTrampoline;
use Polyflake\Internal\Core;
use Polyflake\Internal\Failure;
use Polyflake\Internal\Library;
use SensitiveParameter;

/**
 * Issues unique, time-ordered 64-bit IDs.
 *
 *     $ids = new Snowflake(node: 7);
 *     $id = $ids->nextId();
 *
 * With a built-in clock, Snowflakes in one process share a cursor, across requests too, and so never repeat each
 * other's IDs, if they have the same epoch and tick, the same positions and widths for the timestamp and the sequence,
 * and the same node bits in the same place. The names of their layouts do not matter. Layouts that split the bits
 * differently are separate systems, and their IDs may collide. Each process needs its own node, or all must share a
 * state file. README.md explains how to do this with php-fpm.
 *
 * @implements IteratorAggregate<int, int>
 */
final class Snowflake implements IdGenerator, IteratorAggregate
{
    /** Read-only, so that PHP refuses to construct an object again, which would lose the pointer. */
    private readonly FFI $ffi;
    /** Null once the Snowflake is freed. */
    private ?CData $pointer = null;
    /** polyflake_next_id_or_zero: calling it through a variable is cheaper than calling it by name. */
    private CData $nextIdOrZero;
    /**
     * The function's argument as a number, which is cheaper to pass than a pointer. 0 means a freed Snowflake, or a
     * custom clock, whose exception would be lost: the function then returns 0.
     */
    private int $address = 0;
    private ?ClockTrampoline $clock = null;
    private Layout $layout;
    private int $node;
    /** Buffers for the outputs of library calls, reused because allocating them takes a third of a call's time. */
    private CData $id;
    private CData $detail;

    /**
     * Creates a Snowflake. Null means an option's default.
     *
     * @param int|array<string, int|string>|string|bool|null $node the node of this process: all node bits as an int or
     *     a decimal string, or its fields, as a map of field to value or a string such as "datacenter=1,worker=7".
     *     Required, unless the layout has no node fields. A bool throws a TypeError: getenv() returns false for a
     *     variable that is not set
     * @param string|Layout|null $layout the name of a preset, a layout as text, or a Layout; "twitter" by default
     * @param ?int $maxBackwardMs how many ms the clock may step back; 1000 by default. Within this limit, IDs are still
     *     issued from the rest of the last tick. With 0, no step back of a tick or more is tolerated
     * @param ?int $maxAheadMs how many ms IDs may run ahead of the clock to serve a burst; 0 by default
     * @param ?int $maxWaitMs the longest that nextId() waits, and that nextIds() waits between two runs of IDs, in ms
     *     of real time; a tick + 1000 by default
     * @param ?string $sequenceStart the first sequence number of a fresh tick: "spread" (the default), so that IDs
     *     issued slowly do not all end in the same bits, or "zero"
     * @param string|callable(): int|null $clock "system" (the default), "steady", or a callable that returns Unix ms. A
     *     string always names a built-in clock: for a function, pass a closure such as time(...). See README.md
     * @param ?string $state the path of a file through which all processes on this host share the node. If the file
     *     does not exist, it is created, which takes about a second
     * @param ?string $lease the address of a store from which the node is leased, such as "redis://host/0". $node is
     *     then optional, and narrows the choice. The constructor waits for a node for at most the wait set in the
     *     address (by default the TTL plus 5 s, so 35 s). All Snowflakes in a process with the same address and layout
     *     share a lease
     * @throws Exception\InvalidLayoutException if the layout is invalid
     * @throws Exception\UnknownLayoutException if no preset has this name
     * @throws Exception\InvalidNodeException if the node is missing or does not fit the layout
     * @throws Exception\InvalidOptionException if another option is invalid, if maxBackwardMs or maxAheadMs differs
     *     from that of a shared cursor, if that cursor uses a different state file or none, or if a lease is combined
     *     with a state file or a custom clock
     * @throws Exception\LeaseUnavailableException if no node is free to be leased, or the store cannot be reached
     * @throws Exception\StateFileException if the state file cannot be used; the message says why
     * @throws Exception\ClockFailedException if the custom clock threw an exception; the clock is read here only if
     *     there is a state file
     * @throws Exception\ForkedException for a node that the parent process used before a fork without a state file
     * @throws LibraryException if libpolyflake cannot be used
     */
    public function __construct(
        int|array|string|bool|null $node = null,
        string|Layout|null $layout = null,
        ?int $maxBackwardMs = null,
        ?int $maxAheadMs = null,
        ?int $maxWaitMs = null,
        ?string $sequenceStart = null,
        string|callable|null $clock = null,
        #[SensitiveParameter] ?string $state = null,
        #[SensitiveParameter] ?string $lease = null,
    ) {
        $this->ffi = Library::ffi();
        $this->nextIdOrZero = $this->ffi->polyflake_next_id_or_zero;
        $this->id = Core::room('uint64_t');
        $this->detail = Core::detail();
        $texts = [
            'layout' => is_string($layout) ? $layout : null,
            'max_backward_ms' => $maxBackwardMs,
            'max_ahead_ms' => $maxAheadMs,
            'max_wait_ms' => $maxWaitMs,
            'sequence_start' => $sequenceStart,
            'clock' => is_string($clock) ? $clock : null,
            'state' => $state,
            'lease' => $lease,
        ];
        $options = $this->ffi->polyflake_options_new();
        try {
            foreach ($texts as $name => $value) {
                if ($value !== null) {
                    Core::set($options, $name, (string) $value, $this->detail);
                }
            }
            Core::setNode($options, $node, $this->detail);
            if ($layout instanceof Layout) {
                $pointer = $layout->pointer();
                $this->check($this->ffi->polyflake_options_set_layout($options, $pointer, $this->detail));
            }
            if ($clock !== null && !is_string($clock)) {
                $this->clock = ClockTrampoline::for($clock);
                $function = $this->clock->function();
                $this->check($this->ffi->polyflake_options_set_clock($options, $function, null, $this->detail));
            }
            $room = Core::room('polyflake_snowflake *');
            $status = $this->ffi->polyflake_snowflake_new($options, $room, $this->detail);
            Core::check($status, $this->detail, $this->clock?->thrown());
            $this->pointer = $room[0];
            $this->address = $this->clock === null ? $this->ffi->cast('uintptr_t', $this->pointer)->cdata : 0;
        } finally {
            $this->ffi->polyflake_options_free($options);
            if ($this->pointer === null) {
                $this->clock?->release();
            }
        }
        $this->layout = Layout::fromPointer($this->ffi->polyflake_snowflake_layout($this->pointer));
        $this->node();
    }

    public function __destruct()
    {
        if ($this->pointer === null) {
            return;
        }
        if ($this->clock?->isRead()) {
            // A call is still inside the library: either its clock is calling this destructor, or the request ends
            // while a Fiber is suspended in that clock. The call then fails as closed, and nothing is freed while it
            // runs.
            $this->close();
            return;
        }
        $this->ffi->polyflake_snowflake_free($this->pointer);
        $this->pointer = null;
        $this->address = 0;
        $this->clock?->release();
    }

    /**
     * Closes this Snowflake: from then on, calls for an ID or for stats throw ClosedException. Other Snowflakes on the
     * same node or state file are not affected. Closing again does nothing.
     *
     * Closing the last Snowflake on a lease gives the node back. This waits for the store, for at most 5 s. A Snowflake
     * that is only destroyed, as at the end of a request, keeps its lease for one TTL, so that the next request can use
     * it.
     */
    public function close(): void
    {
        $this->ffi->polyflake_snowflake_close($this->pointer);
    }

    /**
     * Returns the next ID. If the tick's sequence is used up, this waits for at most maxWaitMs of real time.
     *
     * @throws Exception\SequenceExhaustedException if no ID became available in that time
     * @throws Exception\ClockMovedBackwardsException at once if the clock has stepped back by more than maxBackwardMs;
     *     after the wait if a smaller step back left no ID available in time
     * @throws Exception\TimeOutOfRangeException if the clock is before the epoch or past the layout's end
     * @throws Exception\ClockFailedException if the custom clock threw an exception, which getPrevious() returns
     * @throws Exception\ForkedException in a child process, if there is no state file
     * @throws Exception\StateFileException if the state file was renamed, deleted or replaced, or cannot be written
     * @throws Exception\LeaseLostException if the lease has expired and the store has not renewed it in that time
     * @throws Exception\ClosedException after close()
     * @throws Exception\InvalidIdException if the ID's top bit is set, which happens only with 64-bit layouts: use
     *     nextIdString() for them
     */
    public function nextId(): int
    {
        $id = ($this->nextIdOrZero)($this->address);
        if ($id > 0) {
            return $id;
        }
        return $this->positive($id !== 0 ? $id : $this->takeOrThrow());
    }

    /**
     * Returns the next ID without waiting.
     *
     * @throws PolyflakeException at once, for the same reasons as nextId()
     */
    public function tryNextId(): int
    {
        return $this->positive($this->take('polyflake_try_next_id'));
    }

    /**
     * Returns the next ID as text, which works for every ID of every layout.
     *
     * @param string $format a format of Id
     * @throws PolyflakeException for the same reasons as nextId(), except InvalidIdException
     * @throws Exception\InvalidOptionException if the format is unknown
     */
    public function nextIdString(string $format = 'decimal'): string
    {
        $id = ($this->nextIdOrZero)($this->address);
        if ($id === 0) {
            $id = $this->takeOrThrow();
        }
        return $format === 'decimal' ? (string) Core::number($id) : Core::write($id, $format);
    }

    /**
     * Returns the next $n IDs, each greater than the one before, much faster per ID than nextId().
     *
     * @param int $n 1 to 16777216
     * @return list<int>
     * @throws PolyflakeException for the same reasons as nextId(); IDs may then be lost, but are never repeated
     * @throws Exception\InvalidOptionException if $n is out of range
     */
    public function nextIds(int $n): array
    {
        $this->check($this->ffi->polyflake_check_batch($n, $this->detail));
        $room = $this->ffi->new("uint64_t[$n]");
        $status = $this->ffi->polyflake_fill($this->pointer, $n, $room, $this->detail);
        if ($status !== 0) {
            throw $this->failure($status);
        }
        $ids = [];
        for ($index = 0; $index < $n; $index++) {
            $ids[] = $room[$index];
        }
        // The IDs increase as unsigned numbers, so if any has the top bit set, the last one does.
        $this->positive($ids[$n - 1]);
        return $ids;
    }

    /**
     * Decodes an ID with this Snowflake's layout.
     *
     * @param int|string $id an int or a decimal string
     * @throws Exception\InvalidIdException if the ID has bits outside the layout, or is not an ID
     */
    public function decode(int|string $id): Decoded
    {
        return $this->layout->decode($id);
    }

    /**
     * Returns the layout of this Snowflake's IDs.
     */
    public function layout(): Layout
    {
        return $this->layout;
    }

    /**
     * Returns all node bits as one number, the highest field first. With a lease, the node may change after the lease
     * is lost; this method then returns the node of the last ID or of the next one.
     */
    public function node(): int
    {
        if ($this->pointer !== null) {
            $node = Core::room('uint64_t');
            $this->check($this->ffi->polyflake_snowflake_node($this->pointer, $node, $this->detail));
            $this->node = $node[0];
        }
        return $this->node;
    }

    /**
     * Returns the lease, or null if this Snowflake has none. Reads the clock once.
     *
     * @throws Exception\ClockFailedException if the custom clock threw an exception, which getPrevious() returns
     * @throws Exception\ForkedException in a child process, if there is no state file
     */
    public function lease(): ?Lease
    {
        $room = Core::struct('polyflake_lease');
        $status = $this->ffi->polyflake_snowflake_lease($this->pointer, $room, $this->detail);
        if ($status !== 0) {
            throw $this->failure($status);
        }
        $lease = $room[0];
        if ($lease->state === $this->ffi->POLYFLAKE_LEASE_STATE_NONE) {
            return null;
        }
        return new Lease(
            node: $lease->node,
            boundMs: $lease->bound_ms ?: null,
            leftMs: $lease->left_ms,
            store: FFI::string($lease->store),
            state: $this->ffi->polyflake_lease_state_name($lease->state),
        );
    }

    /**
     * Returns statistics for monitoring. Reads the clock once.
     *
     * @throws Exception\ClockFailedException if the custom clock threw an exception, which getPrevious() returns
     * @throws Exception\ForkedException in a child process, if there is no state file
     * @throws Exception\ClosedException after close()
     */
    public function stats(): Stats
    {
        $room = Core::struct('polyflake_stats');
        $status = $this->ffi->polyflake_snowflake_stats($this->pointer, $room, $this->detail);
        if ($status !== 0) {
            throw $this->failure($status);
        }
        $stats = $room[0];
        $lastIssuedMs = $stats->last_issued_ms;
        return new Stats(
            waits: $stats->waits,
            rollbacks: $stats->rollbacks,
            leadMs: $stats->lead_ms,
            lastIssuedMs: $lastIssuedMs < 0 ? null : $lastIssuedMs,
            leaseLosses: $stats->lease_losses,
        );
    }

    /**
     * Iterates endlessly over IDs from nextId(): `foreach ($ids as $id)`.
     *
     * @return Generator<int, int>
     * @throws PolyflakeException for the same reasons as nextId()
     */
    public function getIterator(): Generator
    {
        while (true) {
            yield $this->nextId();
        }
    }

    /**
     * Sets the cursor of a state file back to the system clock. Use it when a wrong clock has moved the cursor far into
     * the future.
     *
     * First stop the processes that use the file: in any process that is still running, calls throw StateFileException
     * until it restarts. IDs that were issued ahead of the clock are issued again when the clock reaches their time. A
     * file whose cursor is not ahead of the clock is left unchanged.
     *
     * @throws Exception\StateFileException if the file does not exist or cannot be used
     * @throws LibraryException if libpolyflake cannot be used
     */
    public static function resetState(string $path): void
    {
        $detail = Core::detail();
        Core::check(Library::ffi()->polyflake_reset_state($path, strlen($path), $detail), $detail);
    }

    /**
     * Logs the events of this process's leases and counters since the last call: a lease was acquired, lost or given
     * back, a store is not answering, a counter has stopped. Call this now and then, such as at the end of each
     * request, because PHP cannot be called at the moment something happens. Events are kept from a process's first
     * call onward, at most 100 at a time.
     *
     * @param \Psr\Log\LoggerInterface|callable(string, string, array<string, int|string>): mixed $log a logger, or a
     *     function that is called with a PSR-3 level ("info" or "warning"), a message and its context: kind and store,
     *     and node if the event is about a node
     * @return int how many events there were
     * @throws LibraryException if libpolyflake cannot be used
     */
    public static function logLeaseEvents(\Psr\Log\LoggerInterface|callable $log): int
    {
        $log = is_callable($log) ? $log : $log->log(...);
        $room = Core::struct('polyflake_lease_record');
        $detail = Core::detail();
        for ($count = 0;; $count++) {
            Core::check(Library::ffi()->polyflake_next_lease_event($room, $detail), $detail);
            $event = $room[0];
            $kind = FFI::string($event->kind);
            if ($kind === '') {
                return $count;
            }
            $context = ['kind' => $kind, 'store' => FFI::string($event->store)];
            if ($event->has_node !== 0) {
                $context['node'] = $event->node;
            }
            $log($event->is_warning !== 0 ? 'warning' : 'info', FFI::string($event->message), $context);
        }
    }

    public function __clone()
    {
        // Otherwise, the clone's destructor would free the original's pointer.
        $this->pointer = null;
        $this->address = 0;
        throw new LogicException('a Snowflake cannot be cloned: use the same one, or create another');
    }

    /**
     * @return array<never>
     */
    public function __serialize(): array
    {
        throw new LogicException('a Snowflake cannot be serialized: create one in each process, with its own node');
    }

    /**
     * @param array<mixed> $data
     */
    public function __unserialize(array $data): void
    {
        throw new LogicException('a Snowflake cannot be unserialized: create one, with its own node');
    }

    /**
     * Takes an ID after polyflake_next_id_or_zero() returned 0, or throws an exception that says why it cannot. With a
     * built-in clock, this does not wait again. With a custom clock, nothing has been called yet.
     */
    private function takeOrThrow(): int
    {
        return $this->take($this->clock === null ? 'polyflake_try_next_id' : 'polyflake_next_id');
    }

    /**
     * Calls a library function that issues an ID.
     *
     * A signal handler (pcntl_async_signals) or a destructor may run before the ID is read, and take an ID itself. That
     * overwrites our ID and leaves 0, which is never an ID. Our ID is then lost, and we take another.
     */
    private function take(string $function): int
    {
        do {
            $status = $this->ffi->$function($this->pointer, $this->id, $this->detail);
            $id = $this->id[0];
            $this->id[0] = 0;
        } while ($id === 0 && $status === 0);
        return $status === 0 ? $id : throw $this->failure($status);
    }

    private function positive(int $id): int
    {
        return $id > 0 ? $id : throw Core::tooLarge($id, $this->detail);
    }

    private function check(int $status): void
    {
        Core::check($status, $this->detail);
    }

    private function failure(int $status): \Throwable
    {
        if ($this->pointer === null) {
            // PHP has already destroyed this object, as it may at the end of a request.
            return Failure::inWords($this->ffi->POLYFLAKE_CLOSED);
        }
        return Failure::of($status, $this->detail, $this->clock?->thrown());
    }
}
