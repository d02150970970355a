package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
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
 * <p>Any number of threads may use one: its IDs never repeat, and each is greater than every ID that was returned
 * before its call began. Make one, keep it, and share it. With a built-in clock, Snowflakes of one process share a
 * cursor, and so never repeat each other's IDs, if they have the same epoch and tick, the same positions and widths of
 * timestamp and sequence, and the same node bits in the same place, whatever their layouts are called. Layouts that
 * split the bits differently are separate systems, and their IDs may collide.
 *
 * <p>A virtual thread that waits for an ID leaves its carrier, and an interrupt ends the wait with a {@link
 * WaitInterruptedException}.
 *
 * <p>An ID is an unsigned number of 64 bits. Layouts of at most 63 bits, as almost all are, have only positive IDs; see
 * {@link Layout} for the others.
 */
public final class Snowflake implements IdGenerator, AutoCloseable {
    /** The most IDs that {@link #nextIds(int)} returns at once. {@link #fill(long[])} has no such limit. */
    public static final int MAX_BATCH = 1 << 24;

    /** How many IDs a critical call takes: it must be short, since a garbage collection waits for its end. */
    private static final int AT_ONCE = 4096;
    /** The most IDs for which a call waits at once. */
    private static final int MOST_AWAITED = 1 << 14;

    private final long address;
    private final Layout layout;
    private final boolean isLeased;
    /** Null for a built-in clock. */
    private final CallersClock clock;

    /** What a Snowflake owns outside the heap. The stub of its clock ends with the arena, after the Snowflake. */
    private record Owned(long address, Arena arena) implements Runnable {
        @Override
        public void run() {
            Native.snowflakeFree(address);
            Reference.reachabilityFence(arena);
        }
    }

    private Snowflake(Owned owned, boolean isLeased, CallersClock clock) {
        address = owned.address;
        this.isLeased = isLeased;
        this.clock = clock;
        Native.CLEANER.register(this, owned);
        try (Arena arena = Arena.ofConfined()) {
            layout = Layout.of(Layout.textAt(Native.snowflakeLayout(address), arena, new Detail(arena)));
        }
    }

    /**
     * Returns a builder.
     *
     * @return the builder, which has the default of every option; only the node has none
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Returns the next ID. If the tick's sequence is used up, waits for at most {@code maxWait} of real time.
     *
     * @return the ID
     * @throws SequenceExhaustedException if that was not enough
     * @throws ClockMovedBackwardsException at once if the clock has stepped back by more than {@code maxBackward}; or
     *     if it has by less, and waiting was not enough
     * @throws TimeOutOfRangeException if the clock is before the layout's epoch or past its end
     * @throws ClockFailedException if the caller's clock threw an exception, which is the cause
     * @throws ForkedException in a child process, without a state file
     * @throws StateFileException if the state file can no longer be used
     * @throws LeaseLostException if the lease has expired, and was not renewed within {@code maxWait}
     * @throws ClosedException after {@link #close()}, also if it came while the call waited
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
                check(Native.nextIdNow(address, id, detail.segment), detail);
                if (id.get(JAVA_LONG, 0) != 0) {
                    return id.get(JAVA_LONG, 0);
                }
            }
            // The wait is counted already; and a call that fails, fails here.
            try (Waiting waiting = new Waiting(this, address, arena, detail)) {
                waiting.await(1, id);
            }
            return id.get(JAVA_LONG, 0);
        }
    }

    /**
     * Returns the next ID without waiting.
     *
     * @return the ID; empty if there is none now, because the tick's sequence is used up
     * @throws PolyflakeException as {@link #nextId()}, at once, except {@link SequenceExhaustedException}
     */
    public OptionalLong tryNextId() {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment id = arena.allocate(JAVA_LONG);
            check(Native.tryNextId(address, id, detail.segment), detail);
            return OptionalLong.of(id.get(JAVA_LONG, 0));
        } catch (SequenceExhaustedException none) {
            return OptionalLong.empty();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the next {@code n} IDs, each greater than the one before: much faster than {@code n} calls of {@link
     * #nextId()}. Waits as {@code nextId()} does, for at most {@code maxWait} between two runs of IDs. If this throws,
     * the IDs that were already taken are lost, never repeated.
     *
     * @param n 1 to {@link #MAX_BATCH}
     * @return the IDs
     * @throws InvalidOptionException for another {@code n}
     * @throws PolyflakeException as {@link #nextId()}
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
     * Fills an array with the next IDs, as {@link #nextIds(int)}. If this throws, the contents of the array are
     * meaningless.
     *
     * @param ids the array, of any length
     * @throws PolyflakeException as {@link #nextId()}
     */
    public void fill(long[] ids) {
        fill(MemorySegment.ofArray(Objects.requireNonNull(ids, "ids")));
    }

    /**
     * Fills a segment with the next IDs, in the byte order of this machine, as {@link #fill(long[])}.
     *
     * @param ids a segment, on the heap or not, whose size is a multiple of 8 bytes, and that is aligned to as many
     * @throws IllegalArgumentException if the segment is read-only, or has another size or alignment
     * @throws PolyflakeException as {@link #nextId()}
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
     * Decodes an ID with this Snowflake's layout. Works after {@link #close()} too.
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
     * Returns all node bits together, the highest field first. With a lease it may change, when the lease was lost: it
     * is the node of the last ID, or of the next one. Works after {@link #close()} too.
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
     * Returns the lease. Works after {@link #close()} too.
     *
     * @return the lease; empty for a Snowflake without one
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
     * Reads counters for monitoring, and the clock once.
     *
     * @return the counters
     * @throws ClockFailedException if the caller's clock threw an exception, which is the cause
     * @throws ForkedException in a child process, without a state file
     * @throws ClosedException after {@link #close()}
     */
    public Stats stats() {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment stats = Native.struct(arena, Stats.SIZE);
            check(Native.snowflakeStats(address, stats, detail.segment), detail);
            return Stats.of(stats);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Closes the Snowflake. From then on, calls for an ID or for stats throw {@link ClosedException}, and so do calls
     * that are waiting in other threads; a call that already has its IDs returns them. Other Snowflakes of the node are
     * not affected. Closing again does nothing.
     *
     * <p>The last Snowflake on a lease gives its node back: it waits for the store, for at most a sixth of the ttl or 5
     * s. Its memory is freed once nothing refers to the Snowflake, closed or not.
     */
    @Override
    public void close() {
        try {
            if (isLeased) {
                StoreThreads.runToTheEnd(() -> Native.snowflakeClose(address));
            } else {
                Native.snowflakeClose(address);
            }
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Throws for a status other than OK, with what the clock threw as the cause. */
    void check(int status, Detail detail) {
        if (status != Native.OK) {
            throw detail.failure(status, clock == null ? null : clock.causeOf(status));
        }
    }

    /**
     * Sets the cursor of a state file back to the system clock. Use it when a wrong clock has moved the cursor far into
     * the future. Stop the processes that use the file first: calls of any that still run throw {@link
     * StateFileException} until they restart. The risk: IDs that were issued ahead of the clock are issued again when
     * the clock gets there. A file whose cursor is not ahead of the clock is left unchanged.
     *
     * @param path the file
     * @throws StateFileException if the file does not exist or cannot be used
     */
    public static void resetState(Path path) {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            byte[] bytes = Native.utf8(Objects.requireNonNull(path, "path").toAbsolutePath().toString());
            detail.check(Native.resetState(Native.bytes(arena, bytes), bytes.length, detail.segment));
        }
    }

    /**
     * Returns the version of the native library.
     *
     * @return such as {@code 0.1.0}
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

        private Builder() {}

        /**
         * Sets an option by name, from text, for values that come from a configuration. Names and texts are the same in
         * every language: layout, node, max_backward_ms, max_ahead_ms, max_wait_ms, sequence_start, clock, state and
         * lease.
         *
         * @param name such as {@code node}
         * @param value such as {@code datacenter=1,worker=7}
         * @return this
         */
        public Builder set(String name, String value) {
            settings.add(Settings.text(name, value));
            if (name.equals("clock")) {
                clock = null;
            }
            isLeased |= name.equals("lease");
            return this;
        }

        /**
         * Sets the layout; the default is {@code twitter}.
         *
         * @param nameOrText as {@link Layout#of(String)} takes it
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
         * no default, because a default node is how duplicates happen.
         *
         * @param node all node bits together
         * @return this
         */
        public Builder node(long node) {
            settings.add(Settings.number("node", node));
            return this;
        }

        /**
         * Sets the node by its fields, all of them.
         *
         * @param fields such as {@code Map.of("datacenter", 1, "worker", 7)}
         * @return this
         */
        public Builder node(Map<String, ? extends Number> fields) {
            settings.add(Settings.node(fields));
            return this;
        }

        /**
         * Sets the node from text.
         *
         * @param text such as {@code 7}, {@code datacenter=1,worker=7}, or {@code ordinal} or {@code ip}, which take it
         *     from the host
         * @return this
         */
        public Builder node(String text) {
            return set("node", text);
        }

        /**
         * Sets how far the clock may step back while IDs are still issued, from the rest of the last tick. After a
         * larger step back, calls throw {@link ClockMovedBackwardsException}. With zero, no step back of a tick or more
         * is tolerated.
         *
         * @param longest whole ms; the default is 1 s
         * @return this
         */
        public Builder maxBackward(Duration longest) {
            settings.add(Settings.duration("max_backward_ms", longest));
            return this;
        }

        /**
         * Sets how far IDs may run ahead of the clock to serve a burst.
         *
         * @param longest whole ms; the default is zero
         * @return this
         */
        public Builder maxAhead(Duration longest) {
            settings.add(Settings.duration("max_ahead_ms", longest));
            return this;
        }

        /**
         * Sets the longest that {@link Snowflake#nextId()} waits, and a batch between two of its runs, in real time.
         * With zero, calls never wait.
         *
         * @param longest whole ms; the default is a tick + 1 s
         * @return this
         */
        public Builder maxWait(Duration longest) {
            settings.add(Settings.duration("max_wait_ms", longest));
            return this;
        }

        /**
         * Sets the first sequence number of a fresh tick.
         *
         * @param start {@code spread} (the default), so that IDs issued slowly do not all end in the same bits, or
         *     {@code zero}
         * @return this
         */
        public Builder sequenceStart(String start) {
            return set("sequence_start", start);
        }

        /**
         * Hides steps back of the wall clock: while it is behind what was already seen, time advances at half the
         * monotonic rate until the wall clock has caught up. This works within {@link #maxBackward(Duration)}.
         *
         * @return this
         */
        public Builder steadyClock() {
            return set("clock", "steady");
        }

        /**
         * Sets a clock of your own, such as {@link java.time.Clock#fixed}, for tests and simulations. The Snowflake
         * then shares no cursor, unless it has a state file: another one with the same layout and node can repeat its
         * IDs.
         *
         * <p>A thread that asks for an ID reads the clock, and several may at once. If it throws an exception, the call
         * throws {@link ClockFailedException} with that as its cause; an {@link Error} comes out of the call itself. A
         * clock that refers to its own Snowflake keeps it in memory as long as the process runs.
         *
         * @param clock the clock
         * @return this
         */
        public Builder clock(InstantSource clock) {
            this.clock = Objects.requireNonNull(clock, "clock");
            return this;
        }

        /**
         * Sets a state file. All processes of this host that name one file share the node, at the same time or one
         * after another: a process that restarts, even after it was killed, continues after the last ID. The file is
         * created if it does not exist, which takes about a second. It must be on a local file system.
         *
         * @param path the file
         * @return this
         */
        public Builder state(Path path) {
            return set("state", Objects.requireNonNull(path, "path").toAbsolutePath().toString());
        }

        /**
         * Leases the node from a store that all processes can reach. A node need not be given then, and narrows the
         * choice if it is. While the store cannot be reached, IDs are issued up to the lease's bound; then calls throw
         * {@link LeaseLostException}, until the store has renewed the lease or has given another node. {@link
         * Snowflake#close()} gives the node back. What happens to leases is logged: see {@link LeaseEvents}.
         *
         * @param address such as {@code redis://host/0}
         * @return this
         */
        public Builder lease(String address) {
            return set("lease", address);
        }

        /**
         * Builds the Snowflake. With a lease, waits for a node, for at most the address's wait (its ttl + 5 s, so 35 s
         * by default); an interrupt ends that wait.
         *
         * @return the Snowflake
         * @throws InvalidLayoutException if the layout cannot work
         * @throws UnknownLayoutException if no preset has this name
         * @throws InvalidNodeException if the node is missing or does not fit the layout
         * @throws InvalidOptionException if another option is invalid; if maxBackward or maxAhead differ from those of
         *     a shared cursor, or that cursor uses another state file or none; and for a lease with a state file or a
         *     clock of your own
         * @throws LeaseUnavailableException if no node is free to be leased, or the store cannot be reached
         * @throws StateFileException if the state file cannot be used
         * @throws ClockFailedException if your clock threw an exception, which is read here only for a state file
         * @throws ForkedException for a node that the parent process used before a fork without a state file
         * @throws LibraryException if the native library cannot be used
         * @throws WaitInterruptedException if the thread was interrupted while the call waited for a node
         */
        public Snowflake build() {
            Supplier<Snowflake> make = new Builder(this)::make;
            Snowflake made;
            if (isLeased) {
                LeaseEvents.listen();
                made = StoreThreads.open(make);
            } else {
                made = make.get();
            }
            LeaseEvents.warnOfCopies();
            return made;
        }

        /** A copy, since a thread may go on with it when this one has changed. */
        private Builder(Builder other) {
            settings.addAll(other.settings);
            clock = other.clock;
            isLeased = other.isLeased;
        }

        private Snowflake make() {
            try (Settings options = new Settings(settings)) {
                Arena arena = Arena.ofAuto();
                CallersClock callersClock = clock == null ? null : new CallersClock(clock);
                if (callersClock != null) {
                    options.setClock(callersClock.function(arena));
                }
                long made = options.make(Native::snowflakeNew,
                        status -> callersClock == null ? null : callersClock.causeOf(status));
                return new Snowflake(new Owned(made, arena), isLeased, callersClock);
            }
        }
    }
}
