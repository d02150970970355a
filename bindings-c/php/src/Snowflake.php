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

/**
 * A generator of unique, time-ordered 64-bit IDs.
 *
 *     $ids = new Snowflake(node: 7);
 *     $id = $ids->nextId();
 *
 * On a built-in clock, the Snowflakes of a process share one cursor, across requests too, so that none repeats
 * another's IDs, where their epoch, their tick, the places and widths of timestamp and sequence, and their node's bits
 * in their place are the same, whatever the layouts are called. Layouts that split the bits in other ways are as two
 * systems: nothing keeps their IDs apart. Processes must have nodes of their own, or one state file: README.md says
 * how under php-fpm.
 *
 * @implements IteratorAggregate<int, int>
 */
final class Snowflake implements IteratorAggregate
{
    private FFI $ffi;
    /** Null once it is freed. */
    private ?CData $pointer = null;
    private ?ClockTrampoline $clock = null;
    private Layout $layout;
    private int $node;
    /** Where the library writes an ID and what is wrong: kept, as making them costs a third of a call. */
    private CData $id;
    private CData $detail;

    /**
     * Null stands for an option's default.
     *
     * @param int|array<string, int>|string|null $node this process's own node: all node bits as an int, a map of field
     *     to value, or a text such as "datacenter=1,worker=7". It has no default; a layout without node fields needs
     *     none
     * @param string|Layout|null $layout a preset's name, a layout's text or a Layout; "twitter" by default
     * @param ?int $maxBackwardMs how many ms the clock may step back and IDs still be issued, by counting on in the
     *     last tick; 1000 by default, 0 refuses every step back
     * @param ?int $maxAheadMs how many ms IDs may run ahead of the clock to serve a burst; 0 by default
     * @param ?int $maxWaitMs how many ms nextId() waits at most, and nextIds() between two of its runs; a tick and
     *     1000 ms by default
     * @param ?string $sequenceStart the first sequence of a fresh tick: "spread" (the default) so that IDs issued
     *     slowly do not all end in the same bits, or "zero"
     * @param string|callable(): int|null $clock "system" (the default), "steady", or a function that returns Unix ms.
     *     A text is always a built-in clock: of a function's name make time(...). See README.md
     * @param ?string $state the path of a file through which all processes of this host share the node. It is made
     *     where there is none, which takes about a second
     * @throws Exception\InvalidLayoutException|Exception\UnknownLayoutException|Exception\InvalidNodeException
     * @throws Exception\InvalidOptionException for another option's value, and where maxBackwardMs or maxAheadMs differ
     *     from those that a shared cursor was made with, or that cursor stands in another state file, or in none
     * @throws Exception\StateFileException where the state file cannot be used; the message says why
     * @throws Exception\ForkedException for a node that the parent had before a fork without a state file
     * @throws LibraryException where libpolyflake cannot be used
     */
    public function __construct(
        int|array|string|null $node = null,
        string|Layout|null $layout = null,
        ?int $maxBackwardMs = null,
        ?int $maxAheadMs = null,
        ?int $maxWaitMs = null,
        ?string $sequenceStart = null,
        string|callable|null $clock = null,
        ?string $state = null,
    ) {
        $this->ffi = Library::ffi();
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
            $this->check($this->ffi->polyflake_snowflake_new($options, $room, $this->detail));
            $this->pointer = $room[0];
        } finally {
            $this->ffi->polyflake_options_free($options);
            if ($this->pointer === null) {
                $this->clock?->release();
            }
        }
        $this->layout = Layout::fromPointer($this->ffi->polyflake_snowflake_layout($this->pointer));
        $this->check($this->ffi->polyflake_snowflake_node($this->pointer, $this->id, $this->detail));
        $this->node = $this->id[0];
    }

    public function __destruct()
    {
        if ($this->pointer !== null) {
            $this->ffi->polyflake_snowflake_free($this->pointer);
            $this->pointer = null;
            $this->clock?->release();
        }
    }

    /**
     * Ends this Snowflake: from here on every call for an ID or its stats throws ClosedException. Others on the same
     * node or state file go on. Closing again does nothing.
     */
    public function close(): void
    {
        $this->ffi->polyflake_snowflake_close($this->pointer);
    }

    /**
     * The next ID. Waits, for at most maxWaitMs of real time, where the tick's sequence is used up.
     *
     * @throws Exception\SequenceExhaustedException where that was not enough
     * @throws Exception\ClockMovedBackwardsException where the clock stands back by more than maxBackwardMs (at once),
     *     or by less and waiting was not enough
     * @throws Exception\TimeOutOfRangeException where the clock stands before the epoch or past the layout's end
     * @throws Exception\ClockFailedException where the caller's clock threw: that is getPrevious()
     * @throws Exception\ForkedException in a child of the process that made it without a state file
     * @throws Exception\StateFileException where the state file was renamed, deleted or replaced, or cannot be written
     * @throws Exception\ClosedException after close()
     * @throws Exception\InvalidIdException where the ID's top bit is set, which only a layout of 64 bits has:
     *     nextIdString() gives such IDs
     */
    public function nextId(): int
    {
        if ($this->clock !== null) {
            // What it throws must not be lost with a first call that only says 0.
            [$status, $id] = $this->take('polyflake_next_id');
            return $status === 0 && $id > 0 ? $id : throw $this->failure($status, $id);
        }
        $id = $this->ffi->polyflake_next_id_or_zero($this->pointer);
        if ($id > 0) {
            return $id;
        }
        // Asked why without a second wait; there may be an ID by now.
        return $id === 0 ? $this->tryNextId() : throw $this->failure(0, $id);
    }

    /**
     * The next ID, or the exception of nextId() at once where there is none yet.
     *
     * @throws PolyflakeException as nextId()
     */
    public function tryNextId(): int
    {
        [$status, $id] = $this->take('polyflake_try_next_id');
        return $status === 0 && $id > 0 ? $id : throw $this->failure($status, $id);
    }

    /**
     * The next ID as a text: every ID of every layout.
     *
     * @param string $format as in Id
     * @throws PolyflakeException as nextId()
     * @throws Exception\InvalidOptionException for another format
     */
    public function nextIdString(string $format = 'decimal'): string
    {
        [$status, $id] = $this->take('polyflake_next_id');
        return $status === 0 ? Core::write($id, $format, $this->detail) : throw $this->failure($status, $id);
    }

    /**
     * The next $n IDs, each greater than the one before: many times faster an ID than nextId().
     *
     * @param int $n 1 to 16777216
     * @return list<int>
     * @throws PolyflakeException as nextId(); IDs may then be lost but never come again
     * @throws Exception\InvalidOptionException for another $n
     */
    public function nextIds(int $n): array
    {
        $this->check($this->ffi->polyflake_check_batch($n, $this->detail));
        $room = $this->ffi->new("uint64_t[$n]");
        $status = $this->ffi->polyflake_fill($this->pointer, $n, $room, $this->detail);
        if ($status !== 0) {
            throw $this->failure($status, 0);
        }
        $ids = [];
        for ($index = 0; $index < $n; $index++) {
            $ids[] = $room[$index];
        }
        // They grow as unsigned numbers do, so the last has the top bit if any has.
        return $ids[$n - 1] > 0 ? $ids : throw $this->failure($status, $ids[$n - 1]);
    }

    /**
     * Takes an ID apart, by this Snowflake's layout.
     *
     * @param int|string $id an int or a decimal string
     * @throws Exception\InvalidIdException for an ID with bits above the layout's, and for what is no ID
     */
    public function decode(int|string $id): Decoded
    {
        return $this->layout->decode($id);
    }

    public function layout(): Layout
    {
        return $this->layout;
    }

    /**
     * All node fields joined, from the highest to the lowest.
     */
    public function node(): int
    {
        return $this->node;
    }

    /**
     * Waits, lead and rollbacks, for an operator's graphs. Reads the clock once.
     *
     * @throws Exception\ClockFailedException where the caller's clock threw: that is getPrevious()
     * @throws Exception\ClosedException after close()
     */
    public function stats(): Stats
    {
        $room = Core::struct('polyflake_stats');
        $status = $this->ffi->polyflake_snowflake_stats($this->pointer, $room, $this->detail);
        if ($status !== 0) {
            throw $this->failure($status, 0);
        }
        $stats = $room[0];
        $lastIssuedMs = $stats->last_issued_ms;
        return new Stats(
            waits: $stats->waits,
            rollbacks: $stats->rollbacks,
            leadMs: $stats->lead_ms,
            lastIssuedMs: $lastIssuedMs < 0 ? null : $lastIssuedMs,
        );
    }

    /**
     * IDs without end, each by nextId(): `foreach ($ids as $id)`.
     *
     * @return Generator<int, int>
     */
    public function getIterator(): Generator
    {
        while (true) {
            yield $this->nextId();
        }
    }

    /**
     * Sets a state file's cursor back to the system clock, where it stands ahead of it: the way out when a clock that
     * was wrong has moved a cursor far into the future.
     *
     * Stop the processes that use the file first: those that go on are refused until they restart. The risk: IDs that
     * were issued ahead of the clock are issued again when the clock gets there.
     *
     * @throws Exception\StateFileException also where there is no such file
     * @throws LibraryException where libpolyflake cannot be used
     */
    public static function resetState(string $path): void
    {
        $detail = Core::detail();
        Core::check(Library::ffi()->polyflake_reset_state($path, strlen($path), $detail), $detail);
    }

    public function __clone()
    {
        // Else the clone's destructor would free what is the original's.
        $this->pointer = null;
        throw new LogicException('a Snowflake cannot be cloned: use the same one, or make another');
    }

    /**
     * @return array<never>
     */
    public function __serialize(): array
    {
        throw new LogicException('a Snowflake cannot be serialized: make one in every process, with a node of its own');
    }

    /**
     * @param array<mixed> $data
     */
    public function __unserialize(array $data): void
    {
        throw new LogicException('a Snowflake cannot be unserialized: make one, with a node of its own');
    }

    /**
     * Calls a function that gives an ID.
     *
     * A signal's handler (pcntl_async_signals) or a destructor may run between the call and the reading of the ID, and
     * take an ID itself. It then leaves 0 where ours stood, for 0 is never issued, and ours is not read twice: another
     * is taken in its place.
     *
     * @return array{int, int} the status and the ID
     */
    private function take(string $function): array
    {
        do {
            $status = $this->ffi->$function($this->pointer, $this->id, $this->detail);
            $id = $this->id[0];
            $this->id[0] = 0;
        } while ($id === 0 && $status === 0);
        return [$status, $id];
    }

    private function check(int $status): void
    {
        Core::check($status, $this->detail);
    }

    private function failure(int $status, int $id): \Throwable
    {
        if ($status === 0) {
            return Core::tooLarge($id, $this->detail);
        }
        if ($this->pointer === null) {
            // PHP has destroyed it already, as at the end of a request.
            return Failure::inWords($this->ffi->POLYFLAKE_CLOSED);
        }
        return Failure::of($status, $this->detail, $this->clock?->thrown());
    }
}
