package io.polyflake;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;

/**
 * Counts for each of many keys: 1, 2, 3 and so on for {@code alice}, and for {@code bob} the same. For the messages of
 * an inbox, or the versions of a document.
 *
 * <pre>{@code
 * try (var inbox = Sequences.open("inbox", String.class, "postgres://host/chat")) {
 *     long number = inbox.nextId("alice");
 * }
 * }</pre>
 *
 * <p>The numbers of a key increase, and none is given twice, by whichever process, as long as the store loses no write
 * that it acknowledged. Numbers are skipped: by a key that left memory and came back, by a new key where others left,
 * and by all keys of a section, at most two steps, when a process ended without {@link #close()}.
 *
 * <p>Only the process that holds the lease gives numbers. The others get {@link LeaseUnavailableException}, with the
 * label of the process that has it between backquotes in the message: it is the {@code label} in that process's store
 * address.
 *
 * <p>Any number of threads may use one. A virtual thread that waits for the store leaves its carrier, and an interrupt
 * ends the wait with a {@link WaitInterruptedException}.
 *
 * @param <K> the type of the keys: {@link String}, {@link Long} or {@link Integer}. The integer 5 and the text "5" are
 *     two keys; an Integer and a Long of 5 are one
 */
public final class Sequences<K> implements AutoCloseable {
    /** For more keys than these, one call in another thread takes less time than a call for each. */
    private static final int FEW = 256;

    private final long address;
    private final String name;
    private final StoreCalls store;

    private Sequences(long address, String name, Duration maxWait) {
        this.address = address;
        this.name = name;
        store = new StoreCalls(maxWait);
        Native.CLEANER.register(this, () -> Native.sequencesFree(address));
    }

    /**
     * Opens sequences with the default options.
     *
     * @param <K> the type of the keys
     * @param name the sequences' name in the store
     * @param keys the class of the keys: String, Long or Integer
     * @param store the address of the store, such as {@code redis://host/0}
     * @return the sequences
     * @throws PolyflakeException as {@link Builder#open()}
     */
    public static <K> Sequences<K> open(String name, Class<K> keys, String store) {
        return builder(name, keys).store(store).open();
    }

    /**
     * Returns a builder.
     *
     * @param <K> the type of the keys
     * @param name the sequences' name in the store: 1 to 100 characters
     * @param keys the class of the keys: String, Long or Integer
     * @return the builder
     * @throws IllegalArgumentException for another class of keys
     */
    public static <K> Builder<K> builder(String name, Class<K> keys) {
        Objects.requireNonNull(keys, "keys");
        if (!List.<Class<?>>of(String.class, Long.class, Integer.class).contains(keys)) {
            throw new IllegalArgumentException("keys are String, Long or Integer, not " + keys.getName());
        }
        return new Builder<>(Objects.requireNonNull(name, "name"));
    }

    /**
     * Returns the key's next number, from memory in most calls. Where the key's section has come to its bound, or the
     * lease has expired, waits for the store, for at most {@code maxWait}.
     *
     * @param key the key
     * @return the number
     * @throws LeaseUnavailableException if another process has the lease by now, which the message names
     * @throws LeaseLostException if the lease could not be renewed and did not come back in that time
     * @throws CounterUnavailableException if the store did not move the bound in that time; and at once where waiting
     *     does not help: the store refuses, has lost writes, or the section has reached 2<sup>63</sup>-1
     * @throws InvalidOptionException for a text with a lone surrogate, which has no UTF-8
     * @throws ForkedException in a child of the process that opened the sequences
     * @throws ClosedException after {@link #close()}, also if it came while the call waited
     * @throws WaitInterruptedException if the thread was interrupted while the call waited
     */
    public long nextId(K key) {
        Objects.requireNonNull(key, "key");
        try {
            return inMemory(key);
        } catch (LeaseUnavailableException | LeaseLostException | CounterUnavailableException mayPass) {
            return store.call(() -> inLibrary(List.of(key))[0], () -> inMemory(key));
        }
    }

    /**
     * Returns the key's next number without waiting for the store.
     *
     * @param key the key
     * @return the number; empty if the store must be asked, which it is meanwhile
     * @throws PolyflakeException as {@link #nextId(Object)}, at once, except {@link CounterUnavailableException}
     */
    public OptionalLong tryNextId(K key) {
        Objects.requireNonNull(key, "key");
        try {
            return OptionalLong.of(inMemory(key));
        } catch (CounterUnavailableException none) {
            return OptionalLong.empty();
        }
    }

    /**
     * Returns a number for each of the keys, in their order. A key that is there twice has two, which increase. If this
     * throws, the numbers that were already taken are lost, never repeated.
     *
     * @param keys the keys
     * @return the numbers
     * @throws PolyflakeException as {@link #nextId(Object)}
     */
    public long[] nextIds(List<? extends K> keys) {
        List<K> all = List.copyOf(Objects.requireNonNull(keys, "keys"));
        if (all.size() > FEW) {
            return store.call(() -> inLibrary(all), () -> all.stream().mapToLong(this::inMemory).toArray());
        }
        return all.stream().mapToLong(this::nextId).toArray();
    }

    private long inMemory(K key) {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment number = arena.allocate(JAVA_LONG);
            detail.check(Native.sequencesTryNextId(address, keys(List.of(key), arena), number, detail.segment));
            return number.get(JAVA_LONG, 0);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Waits for the store, in the library. */
    private long[] inLibrary(List<K> keys) {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment numbers = arena.allocate(JAVA_LONG, Math.max(keys.size(), 1));
            detail.check(Native.sequencesNextIds(
                    address, keys(keys, arena), keys.size(), numbers, detail.segment));
            return numbers.asSlice(0, (long) keys.size() * Long.BYTES).toArray(JAVA_LONG);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** An array of {@code polyflake_key}. */
    private static MemorySegment keys(List<?> keys, Arena arena) {
        final long size = 32;
        MemorySegment array = arena.allocate(Math.max(keys.size(), 1) * size, Long.BYTES);
        long at = 0;
        for (Object key : keys) {
            switch (key) {
                case Number number -> {
                    array.set(JAVA_INT, at, 1); // POLYFLAKE_KEY_INT
                    array.set(JAVA_LONG, at + 8, number.longValue());
                }
                default -> {
                    byte[] text = Native.utf8((String) key);
                    array.set(JAVA_INT, at, 0); // POLYFLAKE_KEY_TEXT
                    array.set(ADDRESS, at + 16, Native.bytes(arena, text));
                    array.set(JAVA_LONG, at + 24, text.length);
                }
            }
            at += size;
        }
        return array;
    }

    /**
     * Returns the name of the sequences.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * Counters for monitoring, since the first Sequences of the name were opened, of all of this process.
     *
     * @param keys how many keys are in memory
     * @param evicted how many keys left memory, for others to have room
     * @param moves how often bounds were moved in the store
     * @param waits how often a call waited or gave up
     * @param timeLeft for how long numbers may be given if the lease is not renewed; zero where another process has it
     */
    public record Stats(long keys, long evicted, long moves, long waits, Duration timeLeft) {
        static final long SIZE = 48;
    }

    /**
     * Reads the counters for monitoring.
     *
     * @return the counters
     * @throws ForkedException in a child of the process that opened the sequences
     * @throws ClosedException after {@link #close()}
     */
    public Stats stats() {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment counts = Native.struct(arena, Stats.SIZE);
            detail.check(Native.sequencesStats(address, counts, detail.segment));
            return new Stats(counts.get(JAVA_LONG, 8), counts.get(JAVA_LONG, 16), counts.get(JAVA_LONG, 24),
                    counts.get(JAVA_LONG, 32), PolyflakeException.duration(counts.get(JAVA_LONG, 40)));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Closes the Sequences. From then on, calls throw {@link ClosedException}, and so do calls that are waiting in
     * other threads. The last ones of a name in this process write how far the keys counted, so that nothing is
     * skipped, and give the lease back: this waits for the store, for at most 10 s. Closing again does nothing.
     */
    @Override
    public void close() {
        try {
            StoreThreads.runToTheEnd(() -> Native.sequencesClose(address));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Returns the name. */
    @Override
    public String toString() {
        return "Sequences[name=" + name + "]";
    }

    /**
     * Opens {@link Sequences}. A later value of an option replaces an earlier one. The library checks the values in
     * {@link #open()}.
     *
     * @param <K> the type of the keys
     */
    public static final class Builder<K> {
        private final String name;
        private final StoreOptions options;

        private Builder(String name) {
            this.name = name;
            options = new StoreOptions(name);
        }

        /**
         * Sets an option by name, from text, for values that come from a configuration. Names and texts are the same in
         * every language: store, sections, step, max_keys and max_wait_ms.
         *
         * @param name such as {@code step}
         * @param value such as {@code 10000}
         * @return this
         */
        public Builder<K> set(String name, String value) {
            options.set(name, value);
            return this;
        }

        /**
         * Sets the address of the store; there must be one, and only one.
         *
         * @param address such as {@code postgres://host/chat?label=10.0.0.7:8080}. Its label is what other processes
         *     are told while this one has the lease; by default, it names the host and the process
         * @return this
         */
        public Builder<K> store(String address) {
            return set("store", address);
        }

        /**
         * Sets how many bounds the store has, over which keys are spread. It cannot be changed later.
         *
         * @param sections 1 to 16,384; the default is 1,024
         * @return this
         */
        public Builder<K> sections(int sections) {
            return set("sections", Integer.toString(sections));
        }

        /**
         * Sets by how many numbers a bound is moved ahead. With a larger step, the store is asked less often, and more
         * numbers are skipped when a process ends without {@link Sequences#close()}.
         *
         * @param numbers 1 to 1,000,000,000; the default is 10,000
         * @return this
         */
        public Builder<K> step(long numbers) {
            return set("step", Long.toString(numbers));
        }

        /**
         * Sets how many keys stay in memory, of at most 40 bytes each, however long they are. Where there are more,
         * those that are used least leave.
         *
         * @param keys 1 to 1,000,000,000; the default is 1,000,000
         * @return this
         */
        public Builder<K> maxKeys(long keys) {
            return set("max_keys", Long.toString(keys));
        }

        /**
         * Sets the longest that a call waits for the store.
         *
         * @param longest whole ms; the default is 10 s
         * @return this
         */
        public Builder<K> maxWait(Duration longest) {
            options.maxWait(longest);
            return this;
        }

        /**
         * Opens the sequences: makes them where the store has none, and waits for the lease, for at most the wait in
         * the store's address (its ttl + 5 s, so 35 s by default). All Sequences of one process with the same store and
         * name are one, whatever the type of their keys. What happens is logged: see {@link LeaseEvents}.
         *
         * @return the sequences
         * @throws InvalidOptionException for an option that cannot be, without a store, where the sequences began with
         *     another number of sections, and where this process uses them with other options
         * @throws LeaseUnavailableException if another process has the lease, which the message names, or the store
         *     cannot be reached
         * @throws LibraryException if the native library cannot be used
         * @throws WaitInterruptedException if the thread was interrupted while the call waited
         */
        public Sequences<K> open() {
            return options.open(Native::sequencesOpen, (address, maxWait) -> new Sequences<K>(address, name, maxWait));
        }
    }
}
