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
 * Gives numbers that count up, each once: 1, 2, 3 and so on, for order numbers or as the keys of a table. A store hands
 * them out in segments, so that most numbers cost no round trip.
 *
 * <pre>{@code
 * try (var orders = Counter.open("orders", "postgres://host/shop")) {
 *     long number = orders.nextId();
 * }
 * }</pre>
 *
 * <p>No number is given twice, by whichever process, as long as the store loses no write that it acknowledged. Each is
 * greater than every number that this process got before the call began (with one store). A process that ends without
 * {@link #close()} leaves a gap of at most the numbers that it had in hand: two segments.
 *
 * <p>Any number of threads may use one. Threads that wait for the store wait in Java, and one thread asks for all of
 * them: a virtual thread leaves its carrier, and an interrupt ends the wait with a {@link WaitInterruptedException}.
 */
public final class Counter implements IdGenerator, AutoCloseable {
    private final long address;
    private final String name;
    private final CounterQueue queue;
    private final StoreCalls store;

    private Counter(long address, String name, Duration maxWait) {
        this.address = address;
        this.name = name;
        queue = new CounterQueue(this, maxWait);
        store = new StoreCalls(maxWait);
        Native.CLEANER.register(this, () -> Native.counterFree(address));
    }

    /**
     * Opens a counter with the default options.
     *
     * @param name the counter's name in the store
     * @param store the address of the store, such as {@code redis://host/0}
     * @return the counter
     * @throws PolyflakeException as {@link Builder#open()}
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
     * Returns the next number. If none is in hand, waits for the store, for at most {@code maxWait}.
     *
     * @return the number
     * @throws CounterUnavailableException if the store gave none in that time; and at once where waiting does not help:
     *     the store refuses, somebody removed the counter, or it has reached 2<sup>63</sup>-1
     * @throws ClosedException after {@link #close()}, also if it came while the call waited
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
     * @return the number; empty if none is in hand: the store is asked for more meanwhile. With a step of 1, none ever
     *     is
     * @throws ClosedException after {@link #close()}
     */
    public OptionalLong tryNextId() {
        try {
            return OptionalLong.of(inHand());
        } catch (CounterUnavailableException none) {
            return OptionalLong.empty();
        }
    }

    /** The next number in hand, or why there is none. */
    long inHand() {
        return ask((number, detail) -> Native.counterTryNextId(address, number, detail));
    }

    /**
     * Returns {@code n} numbers, much faster than {@code n} calls of {@link #nextId()}. They increase (with one store),
     * and need not follow each other: see {@link #nextBlock(int)}. If this throws, the numbers that were already taken
     * are lost, never repeated.
     *
     * @param n 1 to {@link Snowflake#MAX_BATCH}
     * @return the numbers
     * @throws InvalidOptionException for another {@code n}
     * @throws PolyflakeException as {@link #nextId()}
     */
    @Override
    public long[] nextIds(int n) {
        Snowflake.checkBatch(n);
        long[] numbers = new long[n];
        fill(numbers);
        return numbers;
    }

    /**
     * Fills an array with numbers, as {@link #nextIds(int)}. If this throws, the contents of the array are meaningless.
     *
     * @param numbers the array, of any length
     * @throws PolyflakeException as {@link #nextId()}
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

    /** Takes numbers in hand, and returns how many the array has then. */
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

    /** Waits for the store, in the library. */
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
     * Returns the first of {@code n} numbers that follow each other; the last is it plus {@code n} - 1. Where fewer
     * than {@code n} are left of what is in hand, those are passed over, and the store is asked.
     *
     * @param n 1 to {@link Snowflake#MAX_BATCH}
     * @return the first number
     * @throws InvalidOptionException for another {@code n}, and with several stores, whose numbers do not follow each
     *     other
     * @throws PolyflakeException as {@link #nextId()}
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
     * Returns the highest number that the store has handed out, in segments, to any process. Asks the store.
     *
     * @return the number; 0 before the first
     * @throws CounterUnavailableException if the store cannot be reached within {@code maxWait} or has no such counter
     * @throws ClosedException after {@link #close()}
     * @throws WaitInterruptedException if the thread was interrupted while the call waited
     */
    public long peek() {
        return askStore((number, detail) -> Native.counterPeek(address, number, detail));
    }

    /**
     * Lets no number up to this one be handed out any more, by the store to any process: the next is above it. Numbers
     * in hand in this process are given up; other processes use up what they have. Changes nothing where the counter is
     * further already.
     *
     * @param number 1 to 2<sup>63</sup>-1
     * @throws InvalidOptionException for another number
     * @throws PolyflakeException as {@link #peek()}
     */
    public void raise(long number) {
        askStore((ignored, detail) -> Native.counterRaise(address, number, detail));
    }

    /**
     * Deletes the counter from the store. The next one that is opened begins at its start again, and numbers repeat.
     * The Counters of that name in this process give none from then on.
     *
     * @return whether there was one
     * @throws PolyflakeException as {@link #peek()}
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
        return store.call(() -> ask(asking), this::inHand);
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
     * Counters for monitoring, since the first Counter of the name was opened, of all of this process.
     *
     * @param inHand how many numbers are in hand
     * @param step how many numbers the next segment has
     * @param segments how often the store gave numbers
     * @param skipped how many numbers were passed over, so that a block is one run and numbers go on increasing
     * @param waits how often a call found no number in hand, and waited or failed
     */
    public record Stats(long inHand, long step, long segments, long skipped, long waits) {
        static final long SIZE = 48;
    }

    /**
     * Reads the counters for monitoring.
     *
     * @return the counters
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
     * Closes the Counter. From then on, calls throw {@link ClosedException}, and so do calls that are waiting in other
     * threads. The last Counter of a name in this process gives back what it has in hand of its last segment: it waits
     * for the store, for at most 5 s. Closing again does nothing.
     */
    @Override
    public void close() {
        try {
            StoreThreads.runToTheEnd(() -> Native.counterClose(address));
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
     * Opens a {@link Counter}. A later value of an option replaces an earlier one, but for the stores. The library
     * checks the values in {@link #open()}.
     */
    public static final class Builder {
        private final String name;
        private final StoreOptions options;

        private Builder(String name) {
            this.name = name;
            options = new StoreOptions(name);
        }

        /**
         * Sets an option by name, from text, for values that come from a configuration. Names and texts are the same in
         * every language: store, start, step and max_wait_ms.
         *
         * @param name such as {@code step}
         * @param value such as {@code auto}
         * @return this
         */
        public Builder set(String name, String value) {
            options.set(name, value);
            return this;
        }

        /**
         * Adds the address of a store; there must be one. Several share the numbers out: calls go to each in turn, and
         * to the others while one is down, so that numbers are unique, but not ordered. Every process must name them in
         * the same order.
         *
         * @param address such as {@code redis://host/0}
         * @return this
         */
        public Builder store(String address) {
            return set("store", address);
        }

        /**
         * Sets the first number, where the store has no such counter yet.
         *
         * @param number 1 to 2<sup>63</sup>-1; the default is 1
         * @return this
         */
        public Builder start(long number) {
            return set("start", Long.toString(number));
        }

        /**
         * Sets how many numbers a segment has. With 1, the store is asked for each number, and numbers increase over
         * all processes. By default, the first segment has 100 numbers, and the next the number that lasts ten minutes
         * at the present rate: at most twice as many as the one before, and at most 1,000,000.
         *
         * @param numbers 1 to 1,000,000,000
         * @return this
         */
        public Builder step(long numbers) {
            return set("step", Long.toString(numbers));
        }

        /**
         * Sets the longest that a call waits for the store.
         *
         * @param longest whole ms; the default is 10 s
         * @return this
         */
        public Builder maxWait(Duration longest) {
            options.maxWait(longest);
            return this;
        }

        /**
         * Opens the counter: makes it where the store has none, and waits until it can give a number, for at most
         * {@code maxWait}. Counters of one process with the same stores and name share the numbers in hand. What
         * happens is logged: see {@link LeaseEvents}.
         *
         * @return the counter
         * @throws InvalidOptionException for an option that cannot be, without a store, where the stores are in another
         *     order or number than the counter began with, and where this process uses the counter with another start
         *     or step
         * @throws CounterUnavailableException if the store cannot be reached or will not give numbers
         * @throws LibraryException if the native library cannot be used
         * @throws WaitInterruptedException if the thread was interrupted while the call waited
         */
        public Counter open() {
            return options.open(Native::counterOpen, (address, maxWait) -> new Counter(address, name, maxWait));
        }
    }
}
