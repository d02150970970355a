package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.LongFunction;
import java.util.stream.LongStream;

/**
 * The meaning of an ID's bits: the fields from the highest bit down, the epoch, and the length of a tick. Layouts are
 * compared and printed as text. Any number of threads may use a layout.
 *
 * <pre>{@code
 * Decoded message = Layout.of("discord").decode(175928847299117063L);
 * message.time();          // 2016-04-30T11:18:25.796Z
 * message.field("worker"); // 1
 * }</pre>
 *
 * <p>An ID is an unsigned 64-bit number. Only 64-bit layouts have IDs with the top bit set, which are negative as a
 * {@code long}: compare them with {@link Long#compareUnsigned(long, long)}, and print them with {@link
 * Long#toUnsignedString(long)}. The same applies to masks and to {@link #idsPerTick()}.
 */
public final class Layout {
    private final long address;
    private final String text;
    private final Properties properties;
    private final List<Field> fields;
    private final Field[] nodeFields;
    private final Field timestamp;
    private final Field sequence;
    private final long nodeMask;

    /** Mirrors {@code polyflake_layout_info}. */
    private record Properties(long epochMs, long tickMs, long endsAtMs, long idsPerTick, long nodes, int totalBits,
            int timestampBits, int timestampShift, int sequenceBits, int sequenceShift, int nodeBits, int fieldCount) {
        static final long SIZE = 80;

        static Properties of(MemorySegment info) {
            return new Properties(info.get(JAVA_LONG, 8), info.get(JAVA_LONG, 16), info.get(JAVA_LONG, 24),
                    info.get(JAVA_LONG, 32), info.get(JAVA_LONG, 40), info.get(JAVA_INT, 48), info.get(JAVA_INT, 52),
                    info.get(JAVA_INT, 56), info.get(JAVA_INT, 60), info.get(JAVA_INT, 64), info.get(JAVA_INT, 68),
                    info.get(JAVA_INT, 72));
        }
    }

    private Layout(long address, Arena arena, Detail detail) {
        this.address = address;
        Native.layoutFreeAfter(this, address);
        text = textAt(address, arena, detail);
        MemorySegment info = Native.struct(arena, Properties.SIZE);
        detail.check(Native.layoutProperties(address, info, detail.segment));
        properties = Properties.of(info);
        List<Field> found = new ArrayList<>();
        MemorySegment field = Native.struct(arena, 56); // polyflake_field
        for (int n = 0; n < properties.fieldCount; n++) {
            detail.check(Native.layoutField(address, n, field, detail.segment));
            found.add(new Field(field.getString(28), field.get(JAVA_INT, 16), field.get(JAVA_INT, 20),
                    field.get(JAVA_LONG, 8), field.get(JAVA_INT, 24) != 0));
        }
        fields = List.copyOf(found);
        nodeFields = fields.stream().filter(Field::isNode).toArray(Field[]::new);
        nodeMask = fields.stream().filter(Field::isNode).mapToLong(Field::mask).reduce(0, (a, b) -> a | b);
        timestamp = named("timestamp");
        sequence = named("sequence");
    }

    private Field named(String name) {
        return fields.stream().filter(field -> field.name().equals(name)).findFirst().orElseThrow();
    }

    /**
     * Returns a layout.
     *
     * @param nameOrText the name of a preset, such as {@code discord}, or a string such as {@code
     *     timestamp:41|worker:10|sequence:12@1288834974657/1ms}, which consists of FIELD:BITS pairs joined by |, then @
     *     and the epoch in Unix ms, then / and the tick as Nms or Ns
     * @return the layout
     * @throws UnknownLayoutException if no preset has this name
     * @throws InvalidLayoutException if the layout is invalid
     */
    public static Layout of(String nameOrText) {
        Objects.requireNonNull(nameOrText, "nameOrText");
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment made = arena.allocate(JAVA_LONG);
            detail.check(Native.layoutParse(Native.text(arena, nameOrText), made, detail.segment));
            return new Layout(made.get(JAVA_LONG, 0), arena, detail);
        }
    }

    /**
     * Returns the names of the preset layouts, the default first.
     *
     * @return the names
     */
    public static List<String> presets() {
        return LongStream.range(0, Native.presetCount()).mapToObj(Native::presetName).toList();
    }

    /** Returns the text of the native layout at this address. */
    static String textAt(long address, Arena arena, Detail detail) {
        MemorySegment room = arena.allocate(Native.LAYOUT_TEXT_SIZE);
        detail.check(Native.layoutText(address, room, detail.segment));
        return room.getString(0);
    }

    /** Calls the function with the address of the native layout. */
    <T> T use(LongFunction<T> call) {
        try {
            return call.apply(address);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Returns a mask of all node fields. */
    long nodeMask() {
        return nodeMask;
    }

    /**
     * Decodes an ID.
     *
     * @param id the ID, read as an unsigned number
     * @return its parts
     * @throws InvalidIdException if the ID has bits outside the layout
     */
    public Decoded decode(long id) {
        if (properties.totalBits < Long.SIZE && id >>> properties.totalBits != 0) {
            throw refused(id);
        }
        long ticks = timestamp.of(id);
        long node = 0;
        for (Field field : nodeFields) {
            node = node << field.bits() | field.of(id);
        }
        Instant time = Instant.ofEpochMilli(properties.epochMs + ticks * properties.tickMs);
        return new Decoded(id, time, ticks, node, new NodeFields(nodeFields, id), sequence.of(id));
    }

    private PolyflakeException refused(long id) {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment decoded = Native.struct(arena, 120); // polyflake_decoded
            return detail.failure(use(address -> Native.layoutDecode(address, id, decoded, detail.segment)), null);
        }
    }

    /**
     * Builds an ID, which may repeat one that was already issued. Use this to migrate rows, and in tests.
     *
     * @param time the time, which is rounded down to its tick
     * @param node all node bits as one number, or 0 if the layout has no node fields
     * @param sequence the sequence number
     * @return the ID
     * @throws TimeOutOfRangeException if the time is outside the layout
     * @throws InvalidNodeException if the node does not fit the layout
     * @throws InvalidOptionException if the sequence number does not fit the layout
     */
    public long compose(Instant time, long node, long sequence) {
        return compose(time, Settings.number("node", node), sequence);
    }

    /**
     * Builds an ID, like {@link #compose(Instant, long, long)}.
     *
     * @param time the time, which is rounded down to its tick
     * @param node the value of each node field
     * @param sequence the sequence number
     * @return the ID
     * @throws PolyflakeException for the same reasons as {@link #compose(Instant, long, long)}
     */
    public long compose(Instant time, Map<String, ? extends Number> node, long sequence) {
        return compose(time, Settings.node(node), sequence);
    }

    private long compose(Instant time, Settings.Setting node, long sequence) {
        long unixMs = unixMs(time);
        try (Settings settings = new Settings(List.of(Settings.layout(this), node))) {
            return settings.compose(unixMs, sequence);
        }
    }

    /**
     * Returns the lowest ID at or after an instant, for range queries:
     * {@code WHERE id BETWEEN minId(from) AND maxId(to)}.
     *
     * @param time the instant
     * @return the ID
     * @throws TimeOutOfRangeException if the layout has no such ID
     * @throws InvalidLayoutException if a node field is above the timestamp
     */
    public long minId(Instant time) {
        return bound(time, Native::layoutMinId);
    }

    /**
     * Returns the highest ID at or before an instant.
     *
     * @param time the instant
     * @return the ID
     * @throws PolyflakeException for the same reasons as {@link #minId(Instant)}
     */
    public long maxId(Instant time) {
        return bound(time, Native::layoutMaxId);
    }

    private interface Bound {
        int call(long layout, long unixMs, int nanoseconds, MemorySegment id, MemorySegment detail);
    }

    private long bound(Instant time, Bound bound) {
        long unixMs = unixMs(time);
        int nanoseconds = time.getNano() % 1_000_000;
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment id = arena.allocate(JAVA_LONG);
            detail.check(use(address -> bound.call(address, unixMs, nanoseconds, id, detail.segment)));
            return id.get(JAVA_LONG, 0);
        }
    }

    private static long unixMs(Instant time) {
        Objects.requireNonNull(time, "time");
        try {
            return time.toEpochMilli();
        } catch (ArithmeticException beyond) {
            throw Detail.inWords(Native.TIME_OUT_OF_RANGE, time);
        }
    }

    /**
     * Returns all fields, including the timestamp and the sequence, the highest first.
     *
     * @return the fields
     */
    public List<Field> fields() {
        return fields;
    }

    /**
     * Returns the start of tick 0.
     *
     * @return the instant
     */
    public Instant epoch() {
        return Instant.ofEpochMilli(properties.epochMs);
    }

    /**
     * Returns the length of a tick.
     *
     * @return the length in ms
     */
    public long tickMs() {
        return properties.tickMs;
    }

    /**
     * Returns the layout's last instant.
     *
     * @return the instant
     */
    public Instant endsAt() {
        return Instant.ofEpochMilli(properties.endsAtMs);
    }

    /**
     * Returns how many IDs one node can issue in a tick.
     *
     * @return the number
     */
    public long idsPerTick() {
        return properties.idsPerTick;
    }

    /**
     * Returns how many different nodes the layout allows.
     *
     * @return the number
     */
    public long nodes() {
        return properties.nodes;
    }

    /**
     * Returns the width of all fields together.
     *
     * @return the number of bits
     */
    public int totalBits() {
        return properties.totalBits;
    }

    /**
     * Returns the width of the timestamp.
     *
     * @return the number of bits
     */
    public int timestampBits() {
        return properties.timestampBits;
    }

    /**
     * Returns the number of bits below the timestamp.
     *
     * @return the number of bits
     */
    public int timestampShift() {
        return properties.timestampShift;
    }

    /**
     * Returns the width of the sequence.
     *
     * @return the number of bits
     */
    public int sequenceBits() {
        return properties.sequenceBits;
    }

    /**
     * Returns the number of bits below the sequence.
     *
     * @return the number of bits
     */
    public int sequenceShift() {
        return properties.sequenceShift;
    }

    /**
     * Returns the width of all node fields together.
     *
     * @return the number of bits
     */
    public int nodeBits() {
        return properties.nodeBits;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Layout layout && layout.text.equals(text);
    }

    @Override
    public int hashCode() {
        return text.hashCode();
    }

    /** Returns the layout as text, which {@link #of(String)} reads back. */
    @Override
    public String toString() {
        return text;
    }
}
