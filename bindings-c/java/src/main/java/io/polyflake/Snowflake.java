package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Supplier;
import java.util.stream.LongStream;

/**
 * Issues unique, time-ordered 64-bit IDs.
 *
 * <pre>{@code
 * try (var ids = Snowflake.builder().node(7).build()) {
 *     long id = ids.nextId();
 * }
 * }</pre>
 *
 * <p>Any number of threads may use a Snowflake: its IDs never repeat, and each is greater than every ID that was
 * returned before the call for it began. Create one Snowflake, keep it, and share it. With a built-in clock, Snowflakes
 * in one process share a cursor, and so never repeat each other's IDs, if they have the same epoch and tick, the same
 * positions and widths for the timestamp and the sequence, and the same node bits in the same place. The names of their
 * layouts do not matter. Layouts that split the bits differently are separate systems, and their IDs may collide.
 *
 * <p>A virtual thread that waits for an ID releases its carrier, and an interrupt ends the wait with a {@link
 * WaitInterruptedException}.
 *
 * <p>An ID is an unsigned 64-bit number. Almost all layouts have at most 63 bits, so their IDs are always positive. See
 * {@link Layout} for the others.
 */
public final class Snowflake implements IdGenerator, AutoCloseable {
    /** The largest batch that {@link #nextIds(int)} returns. {@link #fill(long[])} has no such limit. */
    public static final int MAX_BATCH = 1 << 24;

    /**
     * The number of IDs that one critical call takes. The call must be short, because garbage collection has to wait
     * for it.
     */
    private static final int AT_ONCE = 4096;
    /** The largest number of IDs that a call waits for at once. */
    private static final int MOST_AWAITED = 1 << 14;

    private final long address;
    private final Layout layout;
    /** Null without a lease. */
    private final LeaseEvents.Use use;
    /** Null for a built-in clock. */
    private final CallersClock clock;

    private Snowflake(long address, Arena clocks, LeaseEvents.Use use, CallersClock clock) {
        this.address = address;
        this.use = use;
        this.clock = clock;
        Native.snowflakeFreeAfter(this, address, clocks);
        try (Arena arena = Arena.ofConfined()) {
            layout = Layout.of(Layout.textAt(Native.snowflakeLayout(address), arena, new Detail(arena)));
        }
    }

    /**
     * Returns a builder.
     *
     * @return the builder, with the default for every option except the node, which has none
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Returns the next ID. If the tick's sequence is used up, this waits for at most {@code maxWait}, measured in real
     * time.
     *
     * @return the ID
     * @throws SequenceExhaustedException if no ID became available in that time
     * @throws ClockMovedBackwardsException at once if the clock has stepped back by more than {@code maxBackward};
     *     after the wait if a smaller step back left no ID available in time
     * @throws TimeOutOfRangeException if the clock is before the layout's epoch or past its end
     * @throws ClockFailedException if the caller's clock threw an exception, which is the cause
     * @throws ForkedException in a child process, if there is no state file
     * @throws StateFileException if the state file can no longer be used
     * @throws LeaseLostException if the lease has expired and was not renewed within {@code maxWait}
     * @throws ClosedException after {@link #close()}, even if another thread closes the Snowflake while the call waits
     * @throws WaitInterruptedException if the thread was interrupted while the call waited
     */
    @Override
    public long nextId() {
        try {
            if (clock == null) {
                long id = Native.nextIdNowOrZero(address);
                if (id != 0) {
                    return id;
                }
            }
            return nextIdSlowly();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private long nextIdSlowly() {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment id = arena.allocate(JAVA_LONG);
            if (clock != null) {
                requireStack();
                check(Native.nextIdNow(address, id, detail.segment), detail);
                if (id.get(JAVA_LONG, 0) != 0) {
                    return id.get(JAVA_LONG, 0);
                }
            }
            // The wait has already been counted. If there is an error, this throws it.
            try (Waiting waiting = new Waiting(this, address, arena, detail)) {
                waiting.await(1, id);
            }
            return id.get(JAVA_LONG, 0);
        }
    }

    /**
     * Returns the next ID without waiting.
     *
     * @return the ID, or empty if the tick's sequence is used up
     * @throws PolyflakeException at once, for the same reasons as {@link #nextId()} except {@link
     *     SequenceExhaustedException}
     */
    public OptionalLong tryNextId() {
        try {
            return OptionalLong.of(idOrReason());
        } catch (SequenceExhaustedException none) {
            return OptionalLong.empty();
        }
    }

    /** Returns the next ID without waiting. If there is none, throws an exception that says why. */
    long idOrReason() {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment id = arena.allocate(JAVA_LONG);
            requireStack();
            check(Native.tryNextId(address, id, detail.segment), detail);
            return id.get(JAVA_LONG, 0);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the next {@code n} IDs, each greater than the one before. This is much faster than {@code n} calls to
     * {@link #nextId()}. It waits as {@code nextId()} does, for at most {@code maxWait} between two runs of IDs. If
     * this throws, the IDs that were already taken are lost, never repeated.
     *
     * @param n 1 to {@link #MAX_BATCH}
     * @return the IDs
     * @throws InvalidOptionException if {@code n} is out of range
     * @throws PolyflakeException for the same reasons as {@link #nextId()}
     */
    @Override
    public long[] nextIds(int n) {
        checkBatch(n);
        long[] ids = new long[n];
        fill(ids);
        return ids;
    }

    static void checkBatch(int n) {
        if (n < 1 || n > MAX_BATCH) {
            try (Arena arena = Arena.ofConfined()) {
                Detail detail = new Detail(arena);
                detail.check(Native.checkBatch(n, detail.segment));
            }
        }
    }

    /**
     * Fills an array with the next IDs, like {@link #nextIds(int)}. If this throws, the contents of the array are
     * meaningless.
     *
     * @param ids the array, of any length
     * @throws PolyflakeException for the same reasons as {@link #nextId()}
     */
    public void fill(long[] ids) {
        fill(MemorySegment.ofArray(Objects.requireNonNull(ids, "ids")));
    }

    /**
     * Fills a segment with the next IDs, in native byte order, like {@link #fill(long[])}.
     *
     * @param ids a segment on or off the heap, aligned to 8 bytes, whose size is a multiple of 8 bytes
     * @throws IllegalArgumentException if the segment is read-only or has the wrong size or alignment
     * @throws PolyflakeException for the same reasons as {@link #nextId()}
     */
    public void fill(MemorySegment ids) {
        Objects.requireNonNull(ids, "ids");
        boolean isAligned = ids.address() % Long.BYTES == 0
                && ids.heapBase().map(base -> base instanceof long[] || base instanceof double[]).orElse(true);
        if (ids.isReadOnly() || ids.byteSize() % Long.BYTES != 0 || !isAligned) {
            throw new IllegalArgumentException(
                    "the segment must be writable, aligned, and of a multiple of 8 bytes: " + ids);
        }
        try {
            if (clock == null) {
                fillOnHeap(ids);
            } else {
                fillFromCallersClock(ids);
            }
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private void fillOnHeap(MemorySegment ids) {
        MemorySegment count = MemorySegment.ofArray(new long[1]);
        Detail detail = Detail.onHeap();
        Filling filling = new Filling(ids, layout.nodeMask());
        do {
            MemorySegment room = filling.room(AT_ONCE);
            long n = Filling.length(room);
            check(Native.fillNowOnHeap(address, n, room, count, detail.segment), detail);
            long filled = count.get(JAVA_LONG, 0);
            filling.filled(filled);
            if (filled < n) {
                await(filling);
                return;
            }
        } while (!filling.isFull());
    }

    private void fillFromCallersClock(MemorySegment ids) {
        Filling filling = new Filling(ids, layout.nodeMask());
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment count = arena.allocate(JAVA_LONG);
            Detail detail = new Detail(arena);
            MemorySegment room = arena.allocate(JAVA_LONG, Math.min(Filling.length(ids), MOST_AWAITED));
            do {
                long n = Math.min(Filling.length(filling.room(MOST_AWAITED)), MOST_AWAITED);
                requireStack();
                check(Native.fillNow(address, n, room, count, detail.segment), detail);
                long filled = count.get(JAVA_LONG, 0);
                filling.put(room, filled);
                if (filled < n) {
                    await(filling);
                    return;
                }
            } while (!filling.isFull());
        }
    }

    private void await(Filling filling) {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment room = arena.allocate(JAVA_LONG, Filling.length(filling.room(MOST_AWAITED)));
            try (Waiting waiting = new Waiting(this, address, arena, detail)) {
                do {
                    long n = Filling.length(filling.room(MOST_AWAITED));
                    filling.put(room, waiting.await(n, room));
                } while (!filling.isFull());
            }
        }
    }

    /**
     * Returns an endless stream of IDs from {@link #nextId()}.
     *
     * @return the stream
     */
    public LongStream stream() {
        return LongStream.generate(this::nextId);
    }

    /**
     * Decodes an ID with this Snowflake's layout. This still works after {@link #close()}.
     *
     * @param id the ID
     * @return its parts
     * @throws InvalidIdException if the ID has bits outside the layout
     */
    public Decoded decode(long id) {
        return layout.decode(id);
    }

    /**
     * Returns the layout of the IDs.
     *
     * @return the layout
     */
    public Layout layout() {
        return layout;
    }

    /**
     * Returns all node bits as one number, the highest field first. With a lease, the node may change after the lease
     * is lost; this method then returns the node of the last ID or of the next one. It still works after {@link
     * #close()}.
     *
     * @return the node
     */
    public long node() {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment node = arena.allocate(JAVA_LONG);
            check(Native.snowflakeNode(address, node, detail.segment), detail);
            return node.get(JAVA_LONG, 0);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the lease. This still works after {@link #close()}.
     *
     * @return the lease, or empty if the Snowflake has none
     */
    public Optional<Lease> lease() {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment lease = Native.struct(arena, Lease.SIZE);
            check(Native.snowflakeLease(address, lease, detail.segment), detail);
            return Lease.of(lease);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns statistics for monitoring. This reads the clock once.
     *
     * @return the statistics
     * @throws ClockFailedException if the caller's clock threw an exception, which is the cause
     * @throws ForkedException in a child process, if there is no state file
     * @throws ClosedException after {@link #close()}
     */
    public Stats stats() {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment stats = Native.struct(arena, Stats.SIZE);
            requireStack();
            check(Native.snowflakeStats(address, stats, detail.segment), detail);
            return Stats.of(stats);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Closes the Snowflake. From then on, calls for an ID or for stats throw {@link ClosedException}, and so do calls
     * waiting in other threads; a call that already has its IDs returns them. Other Snowflakes with the same node are
     * not affected. Closing again does nothing.
     *
     * <p>When the last Snowflake on a lease is closed, it gives the node back and waits for the store, for at most a
     * sixth of the TTL and never more than 5 s. A Snowflake's memory is freed once nothing refers to it, closed or not.
     */
    @Override
    public void close() {
        try {
            if (use == null) {
                Native.snowflakeClose(address);
            } else {
                StoreThreads.runToTheEnd(() -> use.close(() -> Native.snowflakeClose(address)));
            }
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Must be called before each call that may read the clock. */
    void requireStack() {
        if (clock != null) {
            CallersClock.requireStack();
        }
    }

    /** Throws if the status is not OK, with any exception from the clock as the cause. */
    void check(int status, Detail detail) {
        if (status != Native.OK) {
            throw detail.failure(status, clock == null ? null : clock.causeOf(status));
        }
    }

    private static String fileName(Path path) {
        String name = Objects.requireNonNull(path, "path").toAbsolutePath().toString();
        if (path.getFileSystem() != FileSystems.getDefault() || name.indexOf('\uFFFD') >= 0) {
            throw new IllegalArgumentException("the path must be on the default file system, and UTF-8: " + path);
        }
        return name;
    }

    /**
     * Moves a state file's cursor back to the time of the system clock. Use it when a wrong clock has moved the cursor
     * far into the future. Stop the processes that use the file first: in any process that is still running, calls
     * throw {@link StateFileException} until it restarts. IDs that were issued ahead of the clock are issued again when
     * the clock reaches their time. A file whose cursor is not ahead of the clock is left unchanged.
     *
     * @param path the file
     * @throws StateFileException if the file does not exist or cannot be used
     * @throws IllegalArgumentException if the path is not on the default file system, or its name is not UTF-8
     */
    public static void resetState(Path path) {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            byte[] bytes = Native.utf8(fileName(path));
            detail.check(Native.resetState(Native.bytes(arena, bytes), bytes.length, detail.segment));
        }
    }

    /**
     * Returns the version of the native library.
     *
     * @return the version, such as {@code 0.1.0}
     */
    public static String libraryVersion() {
        return Native.version();
    }

    /** Returns the layout and the node. */
    @Override
    public String toString() {
        return "Snowflake[layout=" + layout + ", node=" + node() + "]";
    }

    /**
     * Builds a {@link Snowflake}. A later value of an option replaces an earlier one. The library checks the values in
     * {@link #build()}.
     */
    public static final class Builder {
        private final List<Settings.Setting> settings = new ArrayList<>();
        private InstantSource clock;
        private boolean isLeased;
        private boolean hasState;

        private Builder() {}

        /**
         * Sets an option by name, from a string. Use this for values from a configuration file. The names and values
         * are the same in every language. The options are layout, node, max_backward_ms, max_ahead_ms, max_wait_ms,
         * sequence_start, clock, state and lease.
         *
         * @param name the option's name, such as {@code node}
         * @param value its value, such as {@code datacenter=1,worker=7}
         * @return this
         */
        public Builder set(String name, String value) {
            settings.add(Settings.text(name, value));
            if (name.equals("clock")) {
                clock = null;
            }
            isLeased |= name.equals("lease");
            hasState |= name.equals("state");
            return this;
        }

        /**
         * Sets the layout; the default is {@code twitter}.
         *
         * @param nameOrText a layout, as for {@link Layout#of(String)}
         * @return this
         */
        public Builder layout(String nameOrText) {
            return set("layout", nameOrText);
        }

        /**
         * Sets the layout.
         *
         * @param layout the layout
         * @return this
         */
        public Builder layout(Layout layout) {
            settings.add(Settings.layout(layout));
            return this;
        }

        /**
         * Sets the node. No two processes may use one node at the same time, unless they share a state file. There is
         * no default, because processes would share it and issue duplicates.
         *
         * @param node all node bits as one number
         * @return this
         */
        public Builder node(long node) {
            settings.add(Settings.number("node", node));
            return this;
        }

        /**
         * Sets the node from the values of all its fields.
         *
         * @param fields the values by field name, such as {@code Map.of("datacenter", 1, "worker", 7)}
         * @return this
         */
        public Builder node(Map<String, ? extends Number> fields) {
            settings.add(Settings.node(fields));
            return this;
        }

        /**
         * Sets the node from a string.
         *
         * @param text the node, such as {@code 7} or {@code datacenter=1,worker=7}; or {@code ordinal} or {@code ip},
         *     which derive the node from the host
         * @return this
         */
        public Builder node(String text) {
            return set("node", text);
        }

        /**
         * Sets how far the clock may step back. Within this limit, IDs are still issued from the rest of the last tick.
         * After a larger step back, calls throw {@link ClockMovedBackwardsException}. With zero, no step back of a tick
         * or more is tolerated.
         *
         * @param longest a whole number of ms; the default is 1 s
         * @return this
         */
        public Builder maxBackward(Duration longest) {
            settings.add(Settings.duration("max_backward_ms", longest));
            return this;
        }

        /**
         * Sets how far IDs may run ahead of the clock to serve a burst.
         *
         * @param longest a whole number of ms; the default is zero
         * @return this
         */
        public Builder maxAhead(Duration longest) {
            settings.add(Settings.duration("max_ahead_ms", longest));
            return this;
        }

        /**
         * Sets the longest time that {@link Snowflake#nextId()} waits, or that a batch waits between two runs, in real
         * time. With zero, calls never wait.
         *
         * @param longest a whole number of ms; the default is a tick plus 1 s
         * @return this
         */
        public Builder maxWait(Duration longest) {
            settings.add(Settings.duration("max_wait_ms", longest));
            return this;
        }

        /**
         * Sets the first sequence number of a new tick.
         *
         * @param start {@code spread} (the default), so that IDs issued slowly do not all end in the same bits, or
         *     {@code zero}
         * @return this
         */
        public Builder sequenceStart(String start) {
            return set("sequence_start", start);
        }

        /**
         * Hides backward steps of the wall clock: while the wall clock is behind the latest time already seen, time
         * advances at half the monotonic rate until the wall clock catches up. A step back by more than {@link
         * #maxBackward(Duration)} is not hidden.
         *
         * @return this
         */
        public Builder steadyClock() {
            return set("clock", "steady");
        }

        /**
         * Sets your own clock, such as {@link java.time.Clock#fixed}, for tests and simulations. Unless the Snowflake
         * has a state file, it then shares no cursor, and another Snowflake with the same layout and node can repeat
         * its IDs.
         *
         * <p>The thread that asks for an ID reads the clock, and several threads may read it at once. With a state
         * file, {@link #build()} also reads it, on another thread if the caller is a virtual thread. If the clock
         * throws an exception, the call throws {@link ClockFailedException} with that exception as its cause; an {@link
         * Error} propagates unchanged. The library keeps the clock alive, and so its class loader, until the Snowflake
         * is collected. If the clock or a static field refers to the Snowflake, both stay in memory for as long as the
         * process runs.
         *
         * @param clock the clock
         * @return this
         */
        public Builder clock(InstantSource clock) {
            this.clock = Objects.requireNonNull(clock, "clock");
            return this;
        }

        /**
         * Sets a state file. All processes on this host that use the same file share the node, at the same time or one
         * after another. A process that restarts, even after being killed, continues after the last ID. The file is
         * created if it does not exist, which takes about a second. It must be on a local file system.
         *
         * @param path the file
         * @return this
         * @throws IllegalArgumentException if the path is not on the default file system, or its name is not UTF-8
         */
        public Builder state(Path path) {
            return set("state", fileName(path));
        }

        /**
         * Leases the node from a store that all processes can reach. You need not set a node; if you do, it narrows the
         * choice. While the store cannot be reached, IDs are issued up to the lease's bound; then calls throw {@link
         * LeaseLostException}, until the store renews the lease or assigns another node. {@link Snowflake#close()}
         * gives the node back. Lease events are logged: see {@link LeaseEvents}.
         *
         * @param address the store's address, such as {@code redis://host/0}
         * @return this
         */
        public Builder lease(String address) {
            return set("lease", address);
        }

        /**
         * Builds the Snowflake. With a lease, this waits for a node, for at most the {@code wait} in the store's
         * address (by default the TTL plus 5 s, so 35 s). An interrupt ends the wait.
         *
         * @return the Snowflake
         * @throws InvalidLayoutException if the layout is invalid
         * @throws UnknownLayoutException if no preset has this name
         * @throws InvalidNodeException if the node is missing or does not fit the layout
         * @throws InvalidOptionException if another option is invalid; if maxBackward or maxAhead differs from that of
         *     a shared cursor, or that cursor uses a different state file or none; or if a lease is combined with a
         *     state file or your own clock
         * @throws LeaseUnavailableException if no node is free, or the store cannot be reached
         * @throws StateFileException if the state file cannot be used
         * @throws ClockFailedException if your clock threw an exception; this method reads the clock only if there is a
         *     state file
         * @throws ForkedException if the parent process used the node before a fork, without a state file
         * @throws LibraryException if the native library cannot be used
         * @throws WaitInterruptedException if the thread was interrupted while the call waited for a node
         */
        public Snowflake build() {
            Builder now = new Builder(this);
            Supplier<Snowflake> make = isLeased ? () -> LeaseEvents.open(now::make) : () -> now.make(null);
            // A new state file takes about a second, during which a virtual thread would block its carrier.
            boolean isSlow = isLeased || (hasState && Thread.currentThread().isVirtual());
            Snowflake made = isSlow ? StoreThreads.open(make) : make.get();
            LeaseEvents.warnOfCopies();
            return made;
        }

        /** Copies the builder, because another thread may still need these options after this builder has changed. */
        private Builder(Builder other) {
            settings.addAll(other.settings);
            clock = other.clock;
            isLeased = other.isLeased;
            hasState = other.hasState;
        }

        private Snowflake make(LeaseEvents.Use use) {
            try (Settings options = new Settings(settings)) {
                Arena arena = Arena.ofAuto();
                CallersClock callersClock = clock == null ? null : new CallersClock(clock);
                if (callersClock != null) {
                    CallersClock.requireStack();
                    options.setClock(callersClock.function(arena));
                }
                long made = options.make(Native::snowflakeNew,
                        status -> callersClock == null ? null : callersClock.causeOf(status));
                return new Snowflake(made, arena, use, callersClock);
            }
        }
    }
}
