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
 * Keeps a separate count for each of many keys: 1, 2, 3 and so on for {@code alice}, and the same for {@code bob}. Use
 * this to number the messages in an inbox, or the versions of a document.
 *
 * <pre>{@code
 * try (var inbox = Sequences.open("inbox", String.class, "postgres://host/chat")) {
 *     long number = inbox.nextId("alice");
 * }
 * }</pre>
 *
 * <p>A key's numbers increase, and none is issued twice, not even by different processes, provided that the store loses
 * no write that it has acknowledged. A key skips numbers if it was evicted from memory and is used again, or if it is
 * new in a section from which other keys were evicted. After a process exits without calling {@link #close()}, all
 * keys in a section continue above the section's bound, which is at most two steps above its highest number.
 *
 * <p>Only the process that holds the lease issues numbers. In the others, calls throw {@link
 * LeaseUnavailableException}, whose message contains the holder's label in backquotes. The label is set by {@code
 * label} in the holder's store address.
 *
 * <p>Any number of threads may use a Sequences object. A virtual thread that waits for the store releases its carrier,
 * and an interrupt ends the wait with a {@link WaitInterruptedException}.
 *
 * @param <K> the type of the keys: {@link String}, {@link Long} or {@link Integer}. The integer 5 and the string "5"
 *     are different keys; an Integer 5 and a Long 5 are the same key
 */
public final class Sequences<K> implements AutoCloseable {
    /** With more keys than this, one call on another thread is faster than a call for each key. */
    private static final int FEW = 256;

    private final long address;
    private final String name;
    private final StoreCalls store;
    private final LeaseEvents.Use use;

    private Sequences(long address, String name, Duration maxWait, LeaseEvents.Use use) {
        this.address = address;
        this.name = name;
        this.use = use;
        store = new StoreCalls(maxWait);
        Native.sequencesFreeAfter(this, address);
    }

    /**
     * Opens sequences with the default options.
     *
     * @param <K> the type of the keys
     * @param name the sequences' name in the store
     * @param keys the class of the keys: String, Long or Integer
     * @param store the address of the store, such as {@code redis://host/0}
     * @return the sequences
     * @throws PolyflakeException for the same reasons as {@link Builder#open()}
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
     * @throws IllegalArgumentException if the keys have a different class
     */
    public static <K> Builder<K> builder(String name, Class<K> keys) {
        Objects.requireNonNull(keys, "keys");
        if (!List.<Class<?>>of(String.class, Long.class, Integer.class).contains(keys)) {
            throw new IllegalArgumentException("keys are String, Long or Integer, not " + keys.getName());
        }
        return new Builder<>(Objects.requireNonNull(name, "name"));
    }

    /**
     * Returns the key's next number, usually from memory. If the key's section is used up or the lease has expired,
     * this waits for the store, for at most {@code maxWait}.
     *
     * @param key the key
     * @return the number
     * @throws LeaseUnavailableException if another process now holds the lease; the message names that process
     * @throws LeaseLostException if the lease could not be renewed or regained in that time
     * @throws CounterUnavailableException if the store did not move the bound in that time; or at once if waiting
     *     cannot help, because the store refuses to move the bound or has lost writes, or because the section has
     *     reached 2<sup>63</sup>-1
     * @throws InvalidOptionException if the key is a string with a lone surrogate, which cannot be encoded in UTF-8
     * @throws ForkedException in a child of the process that opened the sequences
     * @throws ClosedException after {@link #close()}, even if another thread closes the Sequences while the call waits
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
     * @return the number, or empty if the store must be queried, which then happens in the background
     * @throws PolyflakeException at once, for the same reasons as {@link #nextId(Object)} except {@link
     *     CounterUnavailableException}
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
     * Returns a number for each key, in the order of the list. A key listed twice gets two increasing numbers. If this
     * throws, the numbers that were already taken are lost, never repeated.
     *
     * @param keys the keys
     * @return the numbers
     * @throws PolyflakeException for the same reasons as {@link #nextId(Object)}
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

    /** Gets numbers for the keys, waiting for the store inside the library. */
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

    /** Returns an array of {@code polyflake_key}. */
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
     * Statistics for monitoring, for all Sequences with this name in this process, since the first were opened.
     *
     * @param keys how many keys are in memory
     * @param evicted how many keys were evicted from memory to make room for others
     * @param moves how many times bounds were moved in the store
     * @param waits how many times a call waited or gave up
     * @param timeLeft how long numbers may still be issued if the lease is not renewed; zero if another process holds
     *     the lease
     */
    public record Stats(long keys, long evicted, long moves, long waits, Duration timeLeft) {
        static final long SIZE = 48;
    }

    /**
     * Returns statistics for monitoring.
     *
     * @return the statistics
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
     * Closes the Sequences. From then on, calls throw {@link ClosedException}, and so do calls waiting in other
     * threads. Closing the last Sequences with a given name in this process stores each section's highest number, above
     * which its keys then continue, gives the lease back, and waits for the store, for at most 10 s. Closing again does
     * nothing.
     */
    @Override
    public void close() {
        try {
            StoreThreads.runToTheEnd(() -> use.close(() -> Native.sequencesClose(address)));
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
         * Sets an option by name, from a string. Use this for values from a configuration file. The names and values
         * are the same in every language. The options are store, sections, step, max_keys and max_wait_ms.
         *
         * @param name the option's name, such as {@code step}
         * @param value its value, such as {@code 10000}
         * @return this
         */
        public Builder<K> set(String name, String value) {
            options.set(name, value);
            return this;
        }

        /**
         * Sets the store's address. Exactly one store is required.
         *
         * @param address the store's address, such as {@code postgres://host/chat?label=10.0.0.7:8080}. While this
         *     process holds the lease, other processes are told its label, which by default names the host and the
         *     process
         * @return this
         */
        public Builder<K> store(String address) {
            return set("store", address);
        }

        /**
         * Sets the number of sections over which the keys are spread. The store keeps a bound for each section. The
         * number cannot be changed later.
         *
         * @param sections 1 to 16,384; the default is 1,024
         * @return this
         */
        public Builder<K> sections(int sections) {
            return set("sections", Integer.toString(sections));
        }

        /**
         * Sets the size of a step. A bound is moved to two steps above its section's highest number. With a larger
         * step, the store is queried less often, but more numbers are skipped if a process exits without calling {@link
         * Sequences#close()}.
         *
         * @param numbers 1 to 1,000,000,000; the default is 10,000
         * @return this
         */
        public Builder<K> step(long numbers) {
            return set("step", Long.toString(numbers));
        }

        /**
         * Sets how many keys stay in memory. Each takes at most 40 bytes, no matter how long it is. If there are more
         * keys, the least used are evicted.
         *
         * @param keys 1 to 1,000,000,000; the default is 1,000,000
         * @return this
         */
        public Builder<K> maxKeys(long keys) {
            return set("max_keys", Long.toString(keys));
        }

        /**
         * Sets the longest time that a call waits for the store.
         *
         * @param longest a whole number of ms; the default is 10 s
         * @return this
         */
        public Builder<K> maxWait(Duration longest) {
            options.maxWait(longest);
            return this;
        }

        /**
         * Opens the sequences, creating them in the store if necessary, and waits for the lease, for at most the {@code
         * wait} in the store's address (by default the TTL plus 5 s, so 35 s). All Sequences with the same store and
         * name in one process share their counts, whatever the type of their keys. Events are logged: see {@link
         * LeaseEvents}.
         *
         * @return the sequences
         * @throws InvalidOptionException if an option is invalid or no store is given, if the sequences were created
         *     with a different number of sections, or if this process already uses them with different options
         * @throws LeaseUnavailableException if another process holds the lease (the message names that process), or if
         *     the store cannot be reached
         * @throws LibraryException if the native library cannot be used
         * @throws WaitInterruptedException if the thread was interrupted while the call waited
         */
        public Sequences<K> open() {
            return options.open(Native::sequencesOpen,
                    (address, maxWait, use) -> new Sequences<K>(address, name, maxWait, use));
        }
    }
}
