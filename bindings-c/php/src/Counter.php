<?php

declare(strict_types=1);

namespace Polyflake;

use FFI;
use FFI\CData;
use Generator;
use IteratorAggregate;
use LogicException;
use Polyflake\Exception\PolyflakeException;
use Polyflake\Internal\Core;
use Polyflake\Internal\Failure;
use Polyflake\Internal\Library;
use TypeError;

/**
 * Numbers that count up, each issued once: 1, 2, 3 and so on, for order numbers or as a table's keys. A store hands
 * them out in segments, so that most numbers need no round trip.
 *
 *     $orders = new Counter('orders', store: 'postgres://host/shop');
 *     $number = $orders->nextId();
 *
 * No number is issued twice, by any process, as long as the store does not lose a write it has acknowledged. With one
 * store, each number is greater than every number that this process got before the call began. A process that ends
 * without close() leaves a gap: the numbers it had in hand, at most two segments, and those of its calls in progress.
 *
 * All Counters in a process with the same stores and name share the numbers in hand. So do requests, if they come at
 * least once in the ttl of the store's address (30 s, or "?ttl=1h"). After a fork, the child fetches its own numbers.
 *
 * @implements IteratorAggregate<int, int>
 */
final class Counter implements IdGenerator, IteratorAggregate
{
    private FFI $ffi;
    /** Null once it is freed. */
    private ?CData $pointer = null;
    /** polyflake_counter_try_next_id_or_zero: calling it through a variable is cheaper than by name. */
    private CData $tryNextIdOrZero;
    /** Its argument as a number, which is cheaper to pass than a pointer. It returns 0 for 0: a freed counter. */
    private int $address = 0;
    /** The outputs of the library's calls: kept, because allocating them takes a third of the time of a call. */
    private CData $number;
    private CData $detail;

    /**
     * Opens the counter. Creates it if the store has none, and waits until it can give a number. Null means an option's
     * default.
     *
     * @param string $name 1 to 100 characters
     * @param string|list<string>|null $store the address of a store, such as "redis://host/0"; required. Several
     *     stores share the numbers out: calls go to each in turn, and to the others while one is down, so numbers are
     *     unique, but not ordered. Every process must name them in the same order
     * @param ?int $start the first number, if the store has no such counter yet; 1 by default
     * @param int|string|null $step how many numbers a segment has: 1 to 1,000,000,000, or "auto" (the default), which
     *     begins with 100 and grows until a segment lasts ten minutes, at most 1,000,000. With 1, the store is asked
     *     for each number, and numbers increase across all processes
     * @param ?int $maxWaitMs the longest a call waits for the store, in ms; 10000 by default
     * @throws Exception\InvalidOptionException for an invalid option, without a store, if the stores differ in order or
     *     number from those that the counter began with, and if this process uses the counter with another start or
     *     step
     * @throws Exception\CounterUnavailableException if the store cannot be reached or will not give numbers
     * @throws LibraryException if libpolyflake cannot be used
     */
    public function __construct(
        private readonly string $name,
        string|array|null $store = null,
        ?int $start = null,
        int|string|null $step = null,
        ?int $maxWaitMs = null,
    ) {
        $this->ffi = Library::ffi();
        $this->tryNextIdOrZero = $this->ffi->polyflake_counter_try_next_id_or_zero;
        $this->number = Core::room('uint64_t');
        $this->detail = Core::detail();
        $texts = [['name', $name], ['start', $start], ['step', $step], ['max_wait_ms', $maxWaitMs]];
        foreach ((array) $store as $address) {
            if (!is_string($address)) {
                throw new TypeError('a store must be of type string, ' . get_debug_type($address) . ' given');
            }
            $texts[] = ['store', $address];
        }
        $options = $this->ffi->polyflake_options_new();
        try {
            foreach ($texts as [$option, $value]) {
                if ($value !== null) {
                    Core::set($options, $option, (string) $value, $this->detail);
                }
            }
            $room = Core::room('polyflake_counter *');
            Core::check($this->ffi->polyflake_counter_open($options, $room, $this->detail), $this->detail);
            $this->pointer = $room[0];
            $this->address = $this->ffi->cast('uintptr_t', $this->pointer)->cdata;
        } finally {
            $this->ffi->polyflake_options_free($options);
        }
    }

    public function __destruct()
    {
        if ($this->pointer !== null) {
            $this->ffi->polyflake_counter_free($this->pointer);
            $this->pointer = null;
            $this->address = 0;
        }
    }

    /**
     * Closes this Counter: from then on, calls throw ClosedException. Closing again does nothing.
     *
     * The last one with a name in this process gives back the rest of its last segment: it waits for the store, for at
     * most 5 s. If a Counter is only destroyed, as at the end of a request, the process keeps the numbers in hand for a
     * ttl, so that the next request continues with them.
     */
    public function close(): void
    {
        $this->ffi->polyflake_counter_close($this->pointer);
    }

    /**
     * The next number. If none is in hand, waits for the store, for at most maxWaitMs.
     *
     * @throws Exception\CounterUnavailableException if the store gave none in that time, and at once if waiting does
     *     not help: the store refuses, somebody removed the counter, or the counter has reached 2^63-1
     * @throws Exception\ClosedException after close()
     */
    public function nextId(): int
    {
        return ($this->tryNextIdOrZero)($this->address) ?: $this->take('polyflake_counter_next_id');
    }

    /**
     * The next number, without waiting for the store.
     *
     * @throws Exception\CounterUnavailableException if none is in hand; meanwhile, the store is asked for more. With a
     *     step of 1, that is always so
     * @throws Exception\ClosedException after close()
     */
    public function tryNextId(): int
    {
        return ($this->tryNextIdOrZero)($this->address) ?: $this->take('polyflake_counter_try_next_id');
    }

    /**
     * $n numbers, much faster per number than nextId(). They increase (with one store), and may have gaps between them:
     * see nextBlock().
     *
     * @param int $n 1 to 16777216
     * @return list<int>
     * @throws PolyflakeException as nextId(); numbers may then be lost, but are never repeated
     * @throws Exception\InvalidOptionException if $n is out of range
     */
    public function nextIds(int $n): array
    {
        $this->check($this->ffi->polyflake_check_batch($n, $this->detail));
        $room = $this->ffi->new("uint64_t[$n]");
        $this->check($this->ffi->polyflake_counter_fill($this->pointer, $n, $room, $this->detail));
        $numbers = [];
        for ($index = 0; $index < $n; $index++) {
            $numbers[] = $room[$index];
        }
        return $numbers;
    }

    /**
     * The first of $n consecutive numbers; the last is that plus $n - 1. If fewer than $n are left in hand, those are
     * skipped, and the store is asked.
     *
     * @param int $n 1 to 16777216
     * @throws PolyflakeException as nextId()
     * @throws Exception\InvalidOptionException if $n is out of range, and with several stores, whose numbers are not
     *     consecutive
     */
    public function nextBlock(int $n): int
    {
        $first = Core::room('uint64_t');
        $this->check($this->ffi->polyflake_counter_next_block($this->pointer, $n, $first, $this->detail));
        return $first[0];
    }

    /**
     * The name of the counter.
     */
    public function name(): string
    {
        return $this->name;
    }

    /**
     * The highest number that the store has handed out, in segments, to any process; 0 before the first. Queries the
     * store.
     *
     * @throws Exception\CounterUnavailableException if it cannot be reached within maxWaitMs or has no such counter
     * @throws Exception\ClosedException after close()
     */
    public function peek(): int
    {
        $number = Core::room('uint64_t');
        $this->check($this->ffi->polyflake_counter_peek($this->pointer, $number, $this->detail));
        return $number[0];
    }

    /**
     * Makes sure that the store hands out no number up to this one any more, to any process. This process gives up its
     * numbers in hand; other processes use theirs up. Changes nothing if the counter is already higher.
     *
     * @param int $number 1 to 2^63-1
     * @throws PolyflakeException as peek()
     * @throws Exception\InvalidOptionException if $number is out of range
     */
    public function raise(int $number): void
    {
        $this->check($this->ffi->polyflake_counter_raise($this->pointer, $number, $this->detail));
    }

    /**
     * Deletes the counter from the store. The next open begins at its start again, and numbers repeat. From then on,
     * this process's Counters with that name issue none.
     *
     * @return bool whether the counter existed
     * @throws PolyflakeException as peek()
     */
    public function remove(): bool
    {
        $existed = Core::room('int');
        $this->check($this->ffi->polyflake_counter_remove($this->pointer, $existed, $this->detail));
        return $existed[0] !== 0;
    }

    /**
     * Counters for monitoring.
     *
     * @throws Exception\ClosedException after close()
     */
    public function stats(): CounterStats
    {
        $room = Core::struct('polyflake_counter_counts');
        $this->check($this->ffi->polyflake_counter_stats($this->pointer, $room, $this->detail));
        $counts = $room[0];
        return new CounterStats(
            inHand: $counts->in_hand,
            step: $counts->step,
            segments: $counts->segments,
            skipped: $counts->skipped,
            waits: $counts->waits,
        );
    }

    /**
     * Endless iteration over numbers from nextId(): `foreach ($orders as $number)`.
     *
     * @return Generator<int, int>
     * @throws PolyflakeException as nextId()
     */
    public function getIterator(): Generator
    {
        while (true) {
            yield $this->nextId();
        }
    }

    public function __clone()
    {
        // So that the destructor of the clone does not free the original's pointer.
        $this->pointer = null;
        $this->address = 0;
        throw new LogicException('a Counter cannot be cloned: use the same one, or create another');
    }

    /**
     * @return array<never>
     */
    public function __serialize(): array
    {
        throw new LogicException('a Counter cannot be serialized: create one in each process');
    }

    /**
     * @param array<mixed> $data
     */
    public function __unserialize(array $data): void
    {
        throw new LogicException('a Counter cannot be unserialized: create one');
    }

    /**
     * Calls a function that takes a number.
     *
     * A signal handler (pcntl_async_signals) or a destructor may run before the number is read, and take a number
     * itself. It overwrites ours and leaves 0, which is never issued. Then ours is lost, and we take another one.
     */
    private function take(string $function): int
    {
        do {
            $status = $this->ffi->$function($this->pointer, $this->number, $this->detail);
            $number = $this->number[0];
            $this->number[0] = 0;
        } while ($number === 0 && $status === 0);
        $this->check($status);
        return $number;
    }

    private function check(int $status): void
    {
        if ($status === 0) {
            return;
        }
        if ($this->pointer === null) {
            // PHP has already destroyed this object, as it may at the end of a request.
            throw Failure::inWords($this->ffi->POLYFLAKE_CLOSED);
        }
        throw Failure::of($status, $this->detail);
    }
}
