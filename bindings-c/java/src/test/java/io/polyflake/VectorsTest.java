package io.polyflake;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.DynamicContainer;
import org.junit.jupiter.api.DynamicNode;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * Runs every case in {@code tests/vectors.json} and {@code tests/public_ids.json}, which describe their own formats,
 * through the public API. A case is skipped if a number does not fit the argument's Java type.
 */
class VectorsTest {
    private static final Path TESTS = Path.of("../../tests");

    private static JsonObject read(String file) throws IOException {
        return JsonParser.parseString(Files.readString(TESTS.resolve(file))).getAsJsonObject();
    }

    private static Stream<DynamicNode> run(String file, Map<String, Consumer<JsonObject>> sections) throws IOException {
        JsonObject all = read(file);
        Set<String> names = new TreeSet<>(all.keySet());
        names.remove("about");
        assertEquals(new TreeSet<>(sections.keySet()), names, "the sections");
        return sections.entrySet().stream().map(section -> {
            JsonArray cases = all.getAsJsonArray(section.getKey());
            assertFalse(cases.isEmpty(), section.getKey());
            List<DynamicTest> tests = new ArrayList<>();
            for (JsonElement each : cases) {
                String text = each.toString();
                String name = tests.size() + ": " + text.substring(0, Math.min(text.length(), 300));
                tests.add(DynamicTest.dynamicTest(name, () -> section.getValue().accept(each.getAsJsonObject())));
            }
            return DynamicContainer.dynamicContainer(section.getKey(), tests);
        });
    }

    @TestFactory
    Stream<DynamicNode> vectors() throws IOException {
        Map<String, Consumer<JsonObject>> sections = new LinkedHashMap<>();
        sections.put("errors", VectorsTest::error);
        sections.put("layouts", VectorsTest::layout);
        sections.put("layouts_refused", c -> wantError(c, () -> Layout.of(text(c, "given"))));
        sections.put("decode", VectorsTest::decode);
        sections.put("decode_refused", c -> wantError(c,
                () -> Layout.of(text(c, "layout")).decode(IdFormat.DECIMAL.parse(text(c, "id")))));
        sections.put("compose", c -> assertEquals(id(c, "id"), compose(c).get()));
        sections.put("compose_refused", c -> wantError(c, compose(c)::get));
        sections.put("bounds", VectorsTest::bounds);
        sections.put("texts", VectorsTest::texts);
        sections.put("texts_read",
                c -> assertEquals(id(c, "id"), IdFormat.of(text(c, "format")).parse(text(c, "text"))));
        sections.put("texts_refused", VectorsTest::textRefused);
        sections.put("options", VectorsTest::options);
        sections.put("options_refused", c -> wantError(c, () -> build(c.getAsJsonObject("options"))));
        sections.put("scripts", VectorsTest::script);
        return run("vectors.json", sections);
    }

    @TestFactory
    Stream<DynamicNode> publicIds() throws IOException {
        Map<String, Consumer<JsonObject>> sections = new LinkedHashMap<>();
        sections.put("public_ids", c -> {
            assertEquals(text(c, "text"), publicIds(c).encode(id(c, "id")));
            assertEquals(id(c, "id"), publicIds(c).decode(text(c, "text")));
        });
        sections.put("public_ids_read", c -> {
            assertEquals(id(c, "id"), publicIds(c).decode(text(c, "text")));
            assertFalse(publicIds(c).encode(id(c, "id")).equals(text(c, "text")), "the first key encodes it already");
        });
        sections.put("public_ids_refused", c -> {
            String message = wantError(c, () -> publicIds(c).decode(text(c, "text"))).getMessage();
            assertEquals(positions(c), positionsIn(message), message);
        });
        sections.put("public_keys_refused", c -> {
            String message = wantError(c, () -> publicIds(c)).getMessage();
            for (JsonElement each : c.getAsJsonArray("keys")) {
                String key = each.getAsString();
                for (int at = 5; at + 4 <= key.length(); at++) {
                    String part = key.substring(at, at + 4);
                    assertFalse(part.matches("[0-9A-Za-z]{4}") && message.contains(part), part + " of a key is shown");
                }
            }
        });
        return run("public_ids.json", sections);
    }

    private static PublicIds publicIds(JsonObject c) {
        List<String> keys = c.getAsJsonArray("keys").asList().stream().map(JsonElement::getAsString).toList();
        return PublicIds.of(keys, text(c, "prefix"));
    }

    private static String text(JsonObject c, String name) {
        return c.get(name).getAsString();
    }

    private static long id(JsonObject c, String name) {
        return Long.parseUnsignedLong(text(c, name));
    }

    /** Parses an argument of an unsigned 64-bit type. */
    private static long given(String text) {
        BigInteger number = new BigInteger(text);
        Assumptions.assumeTrue(number.signum() >= 0 && number.bitLength() <= 64, "no long holds " + text);
        return number.longValue();
    }

    private static Instant instant(String text) {
        BigInteger[] parts = new BigInteger(text).divideAndRemainder(BigInteger.valueOf(1000));
        BigInteger seconds = parts[1].signum() < 0 ? parts[0].subtract(BigInteger.ONE) : parts[0];
        boolean fits = seconds.compareTo(BigInteger.valueOf(Instant.MIN.getEpochSecond())) >= 0
                && seconds.compareTo(BigInteger.valueOf(Instant.MAX.getEpochSecond())) <= 0;
        Assumptions.assumeTrue(fits, "no Instant holds " + text);
        return Instant.ofEpochSecond(seconds.longValue()).plusMillis(Math.floorMod(parts[1].longValue(), 1000L));
    }

    private static final Map<String, Class<?>> ERRORS = new TreeMap<>();

    static {
        for (Class<?> each : PolyflakeException.class.getPermittedSubclasses()) {
            String name = each.getSimpleName().replace("Exception", "").replaceAll("(?<=[a-z])(?=[A-Z])", "_");
            ERRORS.put(name.toLowerCase(java.util.Locale.ROOT), each);
        }
    }

    private static PolyflakeException wantError(JsonObject c, Runnable call) {
        return wantError(text(c, "error"), call);
    }

    private static PolyflakeException wantError(String name, Runnable call) {
        PolyflakeException error = assertThrows(PolyflakeException.class, call::run);
        assertEquals(name, error.name());
        assertEquals(ERRORS.get(name), error.getClass());
        assertTrue(error.getMessage().startsWith(name + ": "), error.getMessage());
        return error;
    }

    private static void error(JsonObject c) {
        int number = c.get("number").getAsInt();
        PolyflakeException error = Detail.inWords(number, "");
        assertEquals(number, error.code());
        assertEquals(text(c, "name"), error.name());
        assertEquals(ERRORS.get(text(c, "name")), error.getClass());
    }

    private static void layout(JsonObject c) {
        Layout layout = Layout.of(text(c, "given"));
        assertEquals(text(c, "text"), layout.toString());
        assertEquals(layout, Layout.of(text(c, "text")));
        assertEquals(layout.hashCode(), Layout.of(text(c, "text")).hashCode());
        assertEquals(Instant.ofEpochMilli(id(c, "epoch_ms")), layout.epoch());
        assertEquals(id(c, "tick_ms"), layout.tickMs());
        assertEquals(Instant.ofEpochMilli(id(c, "ends_at_ms")), layout.endsAt());
        assertEquals(id(c, "ids_per_tick"), layout.idsPerTick());
        assertEquals(id(c, "nodes"), layout.nodes());
        assertEquals(c.get("total_bits").getAsInt(), layout.totalBits());
        assertEquals(c.get("timestamp_bits").getAsInt(), layout.timestampBits());
        assertEquals(c.get("timestamp_shift").getAsInt(), layout.timestampShift());
        assertEquals(c.get("sequence_bits").getAsInt(), layout.sequenceBits());
        assertEquals(c.get("sequence_shift").getAsInt(), layout.sequenceShift());
        assertEquals(c.get("node_bits").getAsInt(), layout.nodeBits());
        List<Field> fields = c.getAsJsonArray("fields").asList().stream().map(JsonElement::getAsJsonObject)
                .map(f -> new Field(text(f, "name"), f.get("bits").getAsInt(), f.get("shift").getAsInt(), id(f, "mask"),
                        !List.of("timestamp", "sequence").contains(text(f, "name"))))
                .toList();
        assertEquals(fields, layout.fields());
        boolean isPreset = !text(c, "given").matches(".*[:|@/].*");
        assertEquals(isPreset, Layout.presets().contains(text(c, "given")));
    }

    private static void decode(JsonObject c) {
        Decoded decoded = Layout.of(text(c, "layout")).decode(id(c, "id"));
        Map<String, Long> fields = new TreeMap<>();
        c.getAsJsonObject("fields").asMap().forEach((name, value) -> fields.put(name, value.getAsLong()));
        assertEquals(new Decoded(id(c, "id"), Instant.ofEpochMilli(id(c, "timestamp_ms")), id(c, "ticks"),
                id(c, "node"), fields, id(c, "sequence")), decoded);
        assertEquals(id(c, "timestamp_ms"), decoded.timestampMs());
        fields.forEach((name, value) -> assertEquals(value, decoded.field(name)));
    }

    private interface Composing {
        long get();
    }

    private static Composing compose(JsonObject c) {
        Layout layout = Layout.of(text(c, "layout"));
        Instant time = instant(text(c, "time_ms"));
        long sequence = given(text(c, "sequence"));
        JsonElement node = c.get("node");
        if (node.isJsonObject()) {
            return () -> layout.compose(time, fields(node.getAsJsonObject()), sequence);
        } else if (node.isJsonNull()) {
            return () -> layout.compose(time, Map.<String, Long>of(), sequence);
        }
        long whole = given(node.getAsString());
        return () -> layout.compose(time, whole, sequence);
    }

    /** Returns the node fields as big integers, because the map takes any Number. */
    private static Map<String, BigInteger> fields(JsonObject node) {
        Map<String, BigInteger> fields = new LinkedHashMap<>();
        node.asMap().forEach((name, value) -> fields.put(name, value.getAsBigInteger()));
        return fields;
    }

    private static void bounds(JsonObject c) {
        Layout layout = Layout.of(text(c, "layout"));
        Instant time = instant(text(c, "time_ms"));
        bound(c.get("min_id"), () -> layout.minId(time));
        bound(c.get("max_id"), () -> layout.maxId(time));
    }

    private static void bound(JsonElement want, Composing call) {
        if (want.isJsonObject()) {
            wantError(want.getAsJsonObject(), call::get);
        } else {
            assertEquals(Long.parseUnsignedLong(want.getAsString()), call.get());
        }
    }

    private static void texts(JsonObject c) {
        assertEquals(c.size(), IdFormat.values().length + 1);
        for (IdFormat format : IdFormat.values()) {
            assertEquals(text(c, format.toString()), format.format(id(c, "id")));
            assertEquals(id(c, "id"), format.parse(text(c, format.toString())));
            assertEquals(format, IdFormat.of(format.toString()));
        }
    }

    private static void textRefused(JsonObject c) {
        String message = wantError(c, () -> IdFormat.of(text(c, "format")).parse(text(c, "text"))).getMessage();
        assertEquals(positions(c), positionsIn(message), message);
    }

    private static List<String> positions(JsonObject c) {
        return c.get("position").isJsonNull() ? List.of() : List.of("position " + text(c, "position"));
    }

    private static List<String> positionsIn(String message) {
        Matcher matcher = Pattern.compile("\\bposition \\d+\\b").matcher(message);
        return matcher.results().map(java.util.regex.MatchResult::group).toList();
    }

    private static Snowflake.Builder builder(JsonObject options) {
        Snowflake.Builder builder = Snowflake.builder();
        options.asMap().forEach((name, value) -> set(builder, name, value));
        return builder;
    }

    /** Sets an option with its method if the method can express the value, otherwise by name. */
    private static void set(Snowflake.Builder builder, String name, JsonElement value) {
        if (value instanceof JsonObject fields) {
            builder.node(fields(fields));
            return;
        }
        String text = value.getAsString();
        boolean isLong = text.matches("-?\\d{1,18}");
        switch (name) {
            case "layout" -> builder.layout(text);
            case "node" -> {
                if (isLong) {
                    builder.node(Long.parseLong(text));
                } else {
                    builder.node(text);
                }
            }
            case "node_text" -> builder.node(text);
            case "sequence_start" -> builder.sequenceStart(text);
            case "max_backward_ms" -> {
                if (isLong) {
                    builder.maxBackward(Duration.ofMillis(Long.parseLong(text)));
                } else {
                    builder.set(name, text);
                }
            }
            case "max_ahead_ms" -> {
                if (isLong) {
                    builder.maxAhead(Duration.ofMillis(Long.parseLong(text)));
                } else {
                    builder.set(name, text);
                }
            }
            case "max_wait_ms" -> {
                if (isLong) {
                    builder.maxWait(Duration.ofMillis(Long.parseLong(text)));
                } else {
                    builder.set(name, text);
                }
            }
            case "clock" -> {
                if (text.equals("steady")) {
                    builder.steadyClock();
                } else {
                    builder.set(name, text);
                }
            }
            default -> builder.set(name, text);
        }
    }

    private static Snowflake build(JsonObject options) {
        Snowflake.Builder builder = builder(options);
        // Snowflakes with a built-in clock share a cursor, so use a different clock.
        return options.has("clock") ? builder.build() : builder.clock(new HeldClock(1656432460105L)).build();
    }

    private static void options(JsonObject c) {
        Snowflake snowflake = build(c.getAsJsonObject("options"));
        assertEquals(id(c, "node"), snowflake.node());
        assertEquals(text(c, "layout"), snowflake.layout().toString());
    }

    private static void script(JsonObject c) {
        HeldClock clock = new HeldClock(0);
        Snowflake snowflake = builder(c.getAsJsonObject("options")).clock(clock).build();
        for (JsonElement each : c.getAsJsonArray("steps")) {
            JsonObject step = each.getAsJsonObject();
            clock.set(step);
            if (step.has("error")) {
                refusedStep(snowflake, clock, step);
            } else {
                step(snowflake, step);
            }
        }
    }

    private static void refusedStep(Snowflake snowflake, HeldClock clock, JsonObject step) {
        String call = text(step, "call");
        if (call.equals("next_ids") && !text(step, "n").matches("-?\\d{1,9}")) {
            System.out.println("passed over: no int holds " + text(step, "n"));
            return;
        }
        Runnable take = () -> take(snowflake, step);
        if (call.equals("try_next_id") && text(step, "error").equals("sequence_exhausted")) {
            long before = clock.value;
            assertTrue(snowflake.tryNextId().isEmpty());
            // An empty result carries no details, so ask again, at the same clock time.
            clock.value = before;
            clock.wasRead = false;
            take = snowflake::idOrReason;
        }
        PolyflakeException error = wantError(step, take);
        assertEquals(step.has("behind_ms") ? id(step, "behind_ms") : 0, error.behind().toMillis());
        assertEquals(step.has("retry_after_ms") ? id(step, "retry_after_ms") : 0, error.retryAfter().toMillis());
    }

    private static void step(Snowflake snowflake, JsonObject step) {
        long[] ids = take(snowflake, step);
        if (step.has("run")) {
            JsonObject run = step.getAsJsonObject("run");
            assertEquals(id(run, "count"), ids.length);
            assertEquals(id(run, "first"), ids[0]);
            assertEquals(id(run, "last"), ids[ids.length - 1]);
            for (int n = 1; n < ids.length; n++) {
                assertTrue(Long.compareUnsigned(ids[n - 1], ids[n]) < 0, "they do not increase");
            }
            return;
        }
        List<JsonElement> want =
                step.has("ids") ? step.getAsJsonArray("ids").asList() : List.of((JsonPrimitive) step.get("id"));
        assertArrayEquals(want.stream().mapToLong(text -> Long.parseUnsignedLong(text.getAsString())).toArray(), ids,
                () -> step + ": " + Arrays.toString(ids));
    }

    private static long[] take(Snowflake snowflake, JsonObject step) {
        return switch (text(step, "call")) {
            case "next_id" -> new long[] {snowflake.nextId()};
            case "try_next_id" -> new long[] {snowflake.tryNextId().orElseThrow()};
            case "next_ids" -> snowflake.nextIds(Integer.parseInt(text(step, "n")));
            case String unknown -> throw new AssertionError(unknown);
        };
    }

    /** A clock that returns the time set by a step, advanced by each reading after the first. */
    private static final class HeldClock implements InstantSource {
        private long value;
        private long advance;
        private long until;
        private boolean wasRead;

        HeldClock(long value) {
            this.value = value;
            until = value;
        }

        void set(JsonObject step) {
            value = step.has("clock") ? step.get("clock").getAsLong() : value;
            advance = step.has("advance") ? step.get("advance").getAsLong() : 0;
            until = step.has("until") ? step.get("until").getAsLong() : value;
            wasRead = false;
        }

        @Override
        public Instant instant() {
            if (wasRead) {
                value = Math.min(value + advance, until);
            }
            wasRead = true;
            return Instant.ofEpochMilli(value);
        }
    }
}
