package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.IntFunction;

/** The native options for one call. The library parses and checks the values, and supplies the defaults. */
final class Settings implements AutoCloseable {
    /** Sets one option, or a few. */
    interface Setting {
        void apply(Settings settings);
    }

    private final Arena arena = Arena.ofConfined();
    private final long options = Native.optionsNew();
    private final Detail detail = new Detail(arena);

    Settings(Iterable<Setting> settings) {
        try {
            settings.forEach(setting -> setting.apply(this));
        } catch (Throwable thrown) {
            close();
            throw thrown;
        }
    }

    static Setting text(String name, String value) {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(value, name);
        return settings -> {
            byte[] bytes = Native.utf8(value);
            settings.detail.check(Native.optionsSetBytes(settings.options, Native.text(settings.arena, name),
                    Native.bytes(settings.arena, bytes), bytes.length, settings.detail.segment));
        };
    }

    static Setting number(String name, long value) {
        return text(name, Long.toString(value));
    }

    /**
     * Sets a duration in ms. Fractions are kept, so that the library rejects them instead of using a rounded value.
     */
    static Setting duration(String name, Duration value) {
        Objects.requireNonNull(value, name);
        BigDecimal ms = BigDecimal.valueOf(value.getSeconds()).scaleByPowerOfTen(3)
                .add(BigDecimal.valueOf(value.getNano(), 6));
        return text(name, (ms.signum() == 0 ? BigDecimal.ZERO : ms.stripTrailingZeros()).toPlainString());
    }

    static Setting node(Map<String, ? extends Number> fields) {
        Objects.requireNonNull(fields, "fields");
        // Sort the fields, so that the same mistake always causes the same message.
        Map<String, String> texts = new TreeMap<>();
        fields.forEach((field, value) -> texts.put(Objects.requireNonNull(field, "a node field's name"),
                Objects.requireNonNull(value, () -> "node field " + field).toString()));
        return settings -> {
            if (!texts.isEmpty()) {
                // Setting the whole node discards fields that were set before; the first field then discards the whole
                // node.
                number("node", 0).apply(settings);
            }
            texts.forEach((field, value) -> settings.detail.check(Native.optionsSetNodeField(settings.options,
                    Native.text(settings.arena, field), Native.text(settings.arena, value), settings.detail.segment)));
        };
    }

    static Setting layout(Layout layout) {
        Objects.requireNonNull(layout, "layout");
        return settings -> layout.use(address -> {
            settings.detail.check(Native.optionsSetLayout(settings.options, address, settings.detail.segment));
            return null;
        });
    }

    void setClock(MemorySegment clock) {
        detail.check(Native.optionsSetClock(options, clock, detail.segment));
    }

    long compose(long unixMs, long sequence) {
        MemorySegment id = arena.allocate(JAVA_LONG);
        detail.check(Native.optionsCompose(options, unixMs, sequence, id, detail.segment));
        return id.get(JAVA_LONG, 0);
    }

    /** A call that creates an object from these options. */
    interface Making {
        int make(long options, MemorySegment object, MemorySegment detail);
    }

    long make(Making making, IntFunction<Throwable> causeOf) {
        MemorySegment object = arena.allocate(JAVA_LONG);
        int status = making.make(options, object, detail.segment);
        if (status != Native.OK) {
            throw detail.failure(status, causeOf.apply(status));
        }
        return object.get(JAVA_LONG, 0);
    }

    @Override
    public void close() {
        Native.optionsFree(options);
        arena.close();
    }
}
