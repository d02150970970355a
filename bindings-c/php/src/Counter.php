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
use SensitiveParameter;
use TypeError;

/**
 * Issues numbers that count up, each only once: 1, 2, 3 and so on. Use them as order numbers or as a table's keys. A
 * store hands out the numbers in segments, so most calls need no round trip.
 *
 *     $orders = new Counter('orders', store: 'postgres://host/shop');
 *     $number = $orders->nextId();
 *
 * No number is issued twice, not even by different processes, provided that the store loses no write that it has
 * acknowledged. With one store, each number is greater than every number that this process received before the call
 * began. If a process exits without calling close(), the numbers it had fetched but not returned are skipped: at most
 * two segments, plus the numbers taken by calls in progress.
 *
 * All Counters in a process with the same stores and name share the numbers in hand. Later requests share them too, if
 * a request arrives at least once per TTL, as set in the store's address (30 s, or "?ttl=1h"). After a fork, the child
 * fetches its own numbers.
 *
 * @implements IteratorAggregate<int, int>
 */
final class Counter implements IdGenerator, IteratorAggregate
{
    private FFI $ffi;
    /** Null once the Counter is freed. */
    private ?CData $pointer = null;
    /** polyflake_counter_try_next_id_or_zero: calling it through a variable is cheaper than calling it by name. */
    private CData $tryNextIdOrZero;
    /**
     * The function's argument as a number, which is cheaper to pass than a pointer. 0 means a freed counter: the
     * function then returns 0.
     */
    private int $address = 0;
    /** Buffers for the outputs of library calls, reused because allocating them takes a third of a call's time. */
    private CData $number;
    private CData $detail;

    /**
     * Opens the counter. Creates it if the store does not have it, and waits until it can issue a number. Null means an
     * option's default.
     *
     * @param string $name 1 to 100 characters
     * @param string|list<string>|null $store the address of a store, such as "redis://host/0"; required. Several stores
     *     divide the numbers among themselves: calls go to each in turn, and to the others if a store is down, so
     *     numbers are unique, but not ordered. Every process must list the stores in the same order
     * @param ?int $start the first number, if the store does not have the counter yet; 1 by default
     * @param int|string|null $step how many numbers a segment has: 1 to 1,000,000,000, or "auto" (the default), which
     *     begins with 100 and grows until a segment lasts ten minutes, to at most 1,000,000. With 1, the store is asked
     *     for each number, and numbers increase across all processes
     * @param ?int $maxWaitMs the longest a call waits for the store, in ms; 10000 by default
     * @throws Exception\InvalidOptionException if an option is invalid, if no store is given, if the stores differ in
     *     order or number from those the counter was created with, or if this process already uses the counter with a
     *     different start or step
     * @throws Exception\CounterUnavailableException if the store cannot be reached or refuses to hand out numbers
     * @throws LibraryException if libpolyflake cannot be used
     */
    public function __construct(
        private readonly string $name,
        #[SensitiveParameter] string|array|null $store = null,
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
     * Closing the last Counter with a name in this process returns the rest of its last segment to the store, waiting
     * for at most 5 s. If a Counter is only destroyed, as at the end of a request, the process keeps the numbers in
     * hand for one TTL, so that the next request continues with them.
     */
    public function close(): void
    {
        $this->ffi->polyflake_counter_close($this->pointer);
    }

    /**
     * Returns the next number. If no number is in hand, this waits for the store, for at most maxWaitMs.
     *
     * @throws Exception\CounterUnavailableException if the store hands out no number within that time, or at once if
     *     waiting cannot help: the store refuses to hand out numbers, the counter was removed, or it has reached
     *     2^63-1
     * @throws Exception\ClosedException after close()
     */
    public function nextId(): int
    {
        return ($this->tryNextIdOrZero)($this->address) ?: $this->take('polyflake_counter_next_id');
    }

    /**
     * Returns the next number without waiting for the store.
     *
     * @throws Exception\CounterUnavailableException if no number is in hand; more numbers are then requested in the
     *     background. With a step of 1, this always happens
     * @throws Exception\ClosedException after close()
     */
    public function tryNextId(): int
    {
        return ($this->tryNextIdOrZero)($this->address) ?: $this->take('polyflake_counter_try_next_id');
    }

    /**
     * Returns $n numbers, much faster per number than nextId(). With one store, they increase, but they may have gaps.
     * For consecutive numbers, use nextBlock().
     *
     * @param int $n 1 to 16777216
     * @return list<int>
     * @throws PolyflakeException for the same reasons as nextId(); numbers may then be lost, but are never repeated
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
     * Returns the first of $n consecutive numbers; add $n - 1 for the last. If fewer than $n numbers are left in hand,
     * they are skipped, and the store is asked for more.
     *
     * @param int $n 1 to 16777216
     * @throws PolyflakeException for the same reasons as nextId()
     * @throws Exception\InvalidOptionException if $n is out of range, or if the counter has several stores, whose
     *     numbers are not consecutive
     */
    public function nextBlock(int $n): int
    {
        $first = Core::room('uint64_t');
        $this->check($this->ffi->polyflake_counter_next_block($this->pointer, $n, $first, $this->detail));
        return $first[0];
    }

    /**
     * Returns the counter's name.
     */
    public function name(): string
    {
        return $this->name;
    }

    /**
     * Returns the highest number in any segment that the store has handed out, to any process, or 0 before the first
     * segment. Queries the store.
     *
     * @throws Exception\CounterUnavailableException if the store cannot be reached within maxWaitMs or has no such
     *     counter
     * @throws Exception\ClosedException after close()
     */
    public function peek(): int
    {
        $number = Core::room('uint64_t');
        $this->check($this->ffi->polyflake_counter_peek($this->pointer, $number, $this->detail));
        return $number[0];
    }

    /**
     * Moves the counter above $number: from then on, the store hands out only greater numbers. This process discards
     * its numbers in hand; other processes use up theirs. If the counter is already higher, this changes nothing.
     *
     * @param int $number 1 to 2^63-1
     * @throws PolyflakeException for the same reasons as peek()
     * @throws Exception\InvalidOptionException if $number is out of range
     */
    public function raise(int $number): void
    {
        $this->check($this->ffi->polyflake_counter_raise($this->pointer, $number, $this->detail));
    }

    /**
     * Deletes the counter from the store. From then on, this process's Counters with that name issue no numbers. A
     * process that opens the counter later starts again at the first number, so numbers repeat.
     *
     * @return bool whether the counter existed
     * @throws PolyflakeException for the same reasons as peek()
     */
    public function remove(): bool
    {
        $existed = Core::room('int');
        $this->check($this->ffi->polyflake_counter_remove($this->pointer, $existed, $this->detail));
        return $existed[0] !== 0;
    }

    /**
     * Returns statistics for monitoring.
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
     * Iterates endlessly over numbers from nextId(): `foreach ($orders as $number)`.
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

    public function __clone()
    {
        // Otherwise, the clone's destructor would free the original's pointer.
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
     * Calls a library function that issues a number.
     *
     * A signal handler (pcntl_async_signals) or a destructor may run before the number is read, and take a number
     * itself. That overwrites our number and leaves 0, which is never issued. Our number is then lost, and we take
     * another.
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
