package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.stream.LongStream;

/**
 * Issues numbers that count up, each only once: 1, 2, 3 and so on. Use them as order numbers or as a table's keys. A
 * store hands out the numbers in segments, so most calls need no round trip.
 *
 * <pre>{@code
 * try (var orders = Counter.open("orders", "postgres://host/shop")) {
 *     long number = orders.nextId();
 * }
 * }</pre>
 *
 * <p>No number is issued twice, not even by different processes, provided that the store loses no write that it has
 * acknowledged. With one store, each number is greater than every number that this process received before the call
 * began. If a process exits without calling {@link #close()}, the numbers it had fetched but not returned are skipped:
 * at most two segments, plus the numbers taken by calls in progress.
 *
 * <p>Any number of threads may use a Counter. They wait for the store in Java while one thread fetches numbers for all
 * of them, so a virtual thread releases its carrier, and an interrupt ends the wait with a {@link
 * WaitInterruptedException}.
 */
public final class Counter implements IdGenerator, AutoCloseable {
    private final long address;
    private final String name;
    private final CounterQueue queue;
    private final StoreCalls store;
    private final LeaseEvents.Use use;

    private Counter(long address, String name, Duration maxWait, LeaseEvents.Use use) {
        this.address = address;
        this.name = name;
        this.use = use;
        queue = new CounterQueue(this, maxWait);
        store = new StoreCalls(maxWait);
        Native.counterFreeAfter(this, address);
    }

    /**
     * Opens a counter with the default options.
     *
     * @param name the counter's name in the store
     * @param store the address of the store, such as {@code redis://host/0}
     * @return the counter
     * @throws PolyflakeException for the same reasons as {@link Builder#open()}
     */
    public static Counter open(String name, String store) {
        return builder(name).store(store).open();
    }

    /**
     * Returns a builder.
     *
     * @param name the counter's name in the store: 1 to 100 characters
     * @return the builder
     */
    public static Builder builder(String name) {
        return new Builder(Objects.requireNonNull(name, "name"));
    }

    /**
     * Returns the next number. If no number is in hand, this waits for the store, for at most {@code maxWait}.
     *
     * @return the number
     * @throws CounterUnavailableException if the store handed out no number in that time; or at once if waiting cannot
     *     help, because the store refuses to hand out numbers, the counter was removed, or it has reached
     *     2<sup>63</sup>-1
     * @throws ClosedException after {@link #close()}, even if another thread closes the Counter while the call waits
     * @throws WaitInterruptedException if the thread was interrupted while the call waited
     */
    @Override
    public long nextId() {
        try {
            long number = Native.counterTryNextIdOrZero(address);
            if (number != 0) {
                return number;
            }
            long[] room = new long[1];
            queue.fill(room, 0);
            return room[0];
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the next number without waiting for the store.
     *
     * @return the number, or empty if none is in hand; more numbers are then requested in the background. With a step
     *     of 1, no number is ever in hand
     * @throws ClosedException after {@link #close()}
     */
    public OptionalLong tryNextId() {
        try {
            return OptionalLong.of(inHand());
        } catch (CounterUnavailableException none) {
            return OptionalLong.empty();
        }
    }

    /** Returns the next number in hand. If no number is in hand, throws an exception that says why. */
    long inHand() {
        return ask((number, detail) -> Native.counterTryNextId(address, number, detail));
    }

    /**
     * Returns {@code n} numbers, much faster than {@code n} calls to {@link #nextId()}. With one store, they increase,
     * but they may have gaps. For consecutive numbers, use {@link #nextBlock(int)}. If this throws, the numbers that
     * were already taken are lost, never repeated.
     *
     * @param n 1 to {@link Snowflake#MAX_BATCH}
     * @return the numbers
     * @throws InvalidOptionException if {@code n} is out of range
     * @throws PolyflakeException for the same reasons as {@link #nextId()}
     */
    @Override
    public long[] nextIds(int n) {
        Snowflake.checkBatch(n);
        long[] numbers = new long[n];
        fill(numbers);
        return numbers;
    }

    /**
     * Fills an array with numbers, like {@link #nextIds(int)}. If this throws, the contents of the array are
     * meaningless.
     *
     * @param numbers the array, of any length
     * @throws PolyflakeException for the same reasons as {@link #nextId()}
     */
    public void fill(long[] numbers) {
        Objects.requireNonNull(numbers, "numbers");
        try {
            int filled = fillInHand(numbers, 0);
            if (filled < numbers.length) {
                queue.fill(numbers, filled);
            }
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Fills the array from the numbers in hand, and returns how many it then contains. */
    int fillInHand(long[] numbers, int filled) {
        while (filled < numbers.length) {
            long number = Native.counterTryNextIdOrZero(address);
            if (number == 0) {
                break;
            }
            numbers[filled++] = number;
        }
        return filled;
    }

    /** Fetches numbers, waiting for the store inside the library. */
    long[] fetch(int n) {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment numbers = arena.allocate(JAVA_LONG, n);
            detail.check(Native.counterFill(address, n, numbers, detail.segment));
            return numbers.toArray(JAVA_LONG);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the first of {@code n} consecutive numbers; the last is {@code n} - 1 higher. If fewer than {@code n}
     * numbers are in hand, they are skipped, and the store is asked for more.
     *
     * @param n 1 to {@link Snowflake#MAX_BATCH}
     * @return the first number
     * @throws InvalidOptionException if {@code n} is out of range, or if there are several stores, whose numbers are
     *     not consecutive
     * @throws PolyflakeException for the same reasons as {@link #nextId()}
     */
    public long nextBlock(int n) {
        return askStore((number, detail) -> Native.counterNextBlock(address, n, number, detail));
    }

    /**
     * Returns an endless stream of numbers from {@link #nextId()}.
     *
     * @return the stream
     */
    public LongStream stream() {
        return LongStream.generate(this::nextId);
    }

    /**
     * Asks the store for the highest number in any segment that it has handed out, to any process.
     *
     * @return the number, or 0 if none was handed out
     * @throws CounterUnavailableException if the store cannot be reached within {@code maxWait} or has no such counter
     * @throws ClosedException after {@link #close()}
     * @throws WaitInterruptedException if the thread was interrupted while the call waited
     */
    public long peek() {
        return askStore((number, detail) -> Native.counterPeek(address, number, detail));
    }

    /**
     * Raises the counter, so that the store hands out only numbers above {@code number} to any process. This process
     * discards the numbers it has in hand; other processes use up theirs. If the counter is already further along, this
     * changes nothing.
     *
     * @param number 1 to 2<sup>63</sup>-1
     * @throws InvalidOptionException if the number is out of range
     * @throws PolyflakeException for the same reasons as {@link #peek()}
     */
    public void raise(long number) {
        askStore((ignored, detail) -> Native.counterRaise(address, number, detail));
    }

    /**
     * Deletes the counter from the store. From then on, Counters with this name in this process issue no numbers. A
     * process that opens the counter later starts again at the first number, so numbers repeat.
     *
     * @return true if the counter existed
     * @throws PolyflakeException for the same reasons as {@link #peek()}
     */
    public boolean remove() {
        return askStore((existed, detail) -> Native.counterRemove(address, existed, detail)) != 0;
    }

    /** A call that writes a number of up to 8 bytes. */
    private interface Asking {
        int ask(MemorySegment answer, MemorySegment detail);
    }

    private long ask(Asking asking) {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment answer = arena.allocate(JAVA_LONG);
            detail.check(asking.ask(answer, detail.segment));
            return answer.get(JAVA_LONG, 0);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private long askStore(Asking asking) {
        return store.call(() -> ask(asking), () -> {
            throw whyLate();
        });
    }

    /** Returns an exception that says why a call did not get its turn to query the store in time. */
    private PolyflakeException whyLate() {
        // With numbers in hand, the library would return a number instead of a failure.
        if (stats().inHand() == 0) {
            try {
                inHand();
            } catch (PolyflakeException failure) {
                return failure;
            }
        }
        return Detail.plain(Native.COUNTER_UNAVAILABLE, null);
    }

    /**
     * Returns the name of the counter.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * Statistics for monitoring, for all Counters with this name in this process, since the first one was opened.
     *
     * @param inHand how many numbers are in hand
     * @param step how many numbers the next segment will have
     * @param segments how many times the store has handed out numbers
     * @param skipped how many numbers were skipped to keep blocks consecutive and numbers increasing
     * @param waits how many times a call found no number in hand, and waited or failed
     */
    public record Stats(long inHand, long step, long segments, long skipped, long waits) {
        static final long SIZE = 48;
    }

    /**
     * Returns statistics for monitoring.
     *
     * @return the statistics
     * @throws ClosedException after {@link #close()}
     */
    public Stats stats() {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment counts = Native.struct(arena, Stats.SIZE);
            detail.check(Native.counterStats(address, counts, detail.segment));
            return new Stats(counts.get(JAVA_LONG, 8), counts.get(JAVA_LONG, 16), counts.get(JAVA_LONG, 24),
                    counts.get(JAVA_LONG, 32), counts.get(JAVA_LONG, 40));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Closes the Counter. From then on, calls throw {@link ClosedException}, and so do calls waiting in other threads.
     * When the last Counter with its name in this process is closed, it gives back the unused part of its last segment
     * and waits for the store, for at most 5 s. Closing again does nothing.
     */
    @Override
    public void close() {
        try {
            StoreThreads.runToTheEnd(() -> use.close(() -> Native.counterClose(address)));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Returns the name. */
    @Override
    public String toString() {
        return "Counter[name=" + name + "]";
    }

    /**
     * Opens a {@link Counter}. If an option is set again, the new value replaces the old, except that stores are added.
     * The library checks the values in {@link #open()}.
     */
    public static final class Builder {
        private final String name;
        private final StoreOptions options;

        private Builder(String name) {
            this.name = name;
            options = new StoreOptions(name);
        }

        /**
         * Sets an option by name, from a string. Use this for values from a configuration file. The names and values
         * are the same in every language. The options are store, start, step and max_wait_ms.
         *
         * @param name the option's name, such as {@code step}
         * @param value its value, such as {@code auto}
         * @return this
         */
        public Builder set(String name, String value) {
            options.set(name, value);
            return this;
        }

        /**
         * Adds the address of a store; at least one is required. Several stores divide the numbers among themselves:
         * calls go to each in turn, and to the others if a store is down, so numbers are unique, but not ordered. Every
         * process must list the stores in the same order.
         *
         * @param address the store's address, such as {@code redis://host/0}
         * @return this
         */
        public Builder store(String address) {
            return set("store", address);
        }

        /**
         * Sets the first number. This applies only if the counter does not exist in the store yet.
         *
         * @param number 1 to 2<sup>63</sup>-1; the default is 1
         * @return this
         */
        public Builder start(long number) {
            return set("start", Long.toString(number));
        }

        /**
         * Sets the size of a segment. With 1, the store is asked for each number, and numbers increase across all
         * processes. By default, the first segment has 100 numbers, and each later segment has enough for ten minutes
         * at the current rate, but at most twice as many as the segment before and at most 1,000,000.
         *
         * @param numbers 1 to 1,000,000,000
         * @return this
         */
        public Builder step(long numbers) {
            return set("step", Long.toString(numbers));
        }

        /**
         * Sets the longest time that a call waits for the store.
         *
         * @param longest a whole number of ms; the default is 10 s
         * @return this
         */
        public Builder maxWait(Duration longest) {
            options.maxWait(longest);
            return this;
        }

        /**
         * Opens the counter, creating it in the store if necessary, and waits until it can issue a number, for at most
         * {@code maxWait}. Counters with the same stores and name in one process share the numbers in hand. Events are
         * logged: see {@link LeaseEvents}.
         *
         * @return the counter
         * @throws InvalidOptionException if an option is invalid or no store is given; if the stores differ in order or
         *     number from those the counter was created with; or if this process already uses the counter with a
         *     different start or step
         * @throws CounterUnavailableException if the store cannot be reached or will not hand out numbers
         * @throws LibraryException if the native library cannot be used
         * @throws WaitInterruptedException if the thread was interrupted while the call waited
         */
        public Counter open() {
            return options.open(Native::counterOpen,
                    (address, maxWait, use) -> new Counter(address, name, maxWait, use));
        }
    }
}
