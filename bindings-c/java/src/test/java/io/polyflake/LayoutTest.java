package io.polyflake;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class LayoutTest {
    private static final String SIXTY_FOUR = "timestamp:42|node:10|sequence:12@0/1ms";

    @Test
    void aPublishedId() {
        Decoded message = Layout.of("discord").decode(175928847299117063L);
        assertEquals(Instant.parse("2016-04-30T11:18:25.796Z"), message.time());
        assertEquals(List.of("worker", "process"), List.copyOf(message.fields().keySet()));
        assertEquals(1, message.field("worker"));
        assertThrows(IllegalArgumentException.class, () -> message.field("machine"));
        assertThrows(UnsupportedOperationException.class, () -> message.fields().clear());
    }

    @Test
    void fieldsAreAMap() {
        Map<String, Long> fields = Layout.of("discord").decode(175928847299117063L).fields();
        assertEquals(Map.of("worker", 1L, "process", 0L), fields);
        assertEquals(fields, Map.of("worker", 1L, "process", 0L));
        assertEquals(Map.of("worker", 1L, "process", 0L).hashCode(), fields.hashCode());
        assertEquals("{worker=1, process=0}", fields.toString());
        assertTrue(fields.containsKey("process") && !fields.containsKey("machine") && !fields.containsKey(null));
        assertNull(fields.get("sequence"));
        assertThrows(UnsupportedOperationException.class, () -> fields.put("worker", 2L));
        assertThrows(UnsupportedOperationException.class, () -> fields.remove("worker"));
        assertThrows(UnsupportedOperationException.class,
                () -> fields.entrySet().iterator().next().setValue(2L));
        Map<String, Long> none = Layout.of("timestamp:41|sequence:22@0/1ms").decode(0).fields();
        assertEquals(Map.of(), none);
        assertThrows(UnsupportedOperationException.class, none::clear);
    }

    @Test
    void layoutsAreValues() {
        Layout layout = Layout.of("leaf");
        assertEquals(layout, Layout.of(layout.toString()));
        assertNotEquals(layout, Layout.of("discord"));
        assertNotEquals(layout, layout.toString());
        assertTrue(Set.of(layout).contains(Layout.of("leaf")));
        assertEquals("twitter", Layout.presets().getFirst());
        assertThrows(UnsupportedOperationException.class, () -> layout.fields().clear());
    }

    @Test
    void idsOf64BitsAreUnsigned() {
        Layout layout = Layout.of(SIXTY_FOUR);
        Instant late = layout.endsAt();
        long highest = layout.maxId(late);
        assertEquals("18446744073709551615", IdFormat.DECIMAL.format(highest));
        assertEquals(highest, IdFormat.DECIMAL.parse("18446744073709551615"));
        Decoded decoded = layout.decode(highest);
        assertEquals(late, decoded.time());
        assertEquals(1023, decoded.node());
        assertEquals(4095, decoded.sequence());
        assertEquals(highest, layout.compose(late, 1023, 4095));
        long[] ids = {layout.minId(Instant.EPOCH), layout.minId(late)};
        assertTrue(ids[0] >= 0 && ids[1] < 0 && Long.compareUnsigned(ids[0], ids[1]) < 0);
        try (var snowflake = Snowflake.builder().layout(layout).node(3).clock(() -> late).build()) {
            assertTrue(snowflake.nextId() < 0);
            assertTrue(LongStream.of(snowflake.nextIds(10)).allMatch(id -> id < 0));
        }
    }

    @Test
    void instantsThatNoMsHold() {
        Layout layout = Layout.of("twitter");
        var failure = assertThrows(TimeOutOfRangeException.class, () -> layout.minId(Instant.MAX));
        assertTrue(failure.getMessage().startsWith("time_out_of_range: "));
        assertThrows(TimeOutOfRangeException.class, () -> layout.maxId(Instant.MIN));
        assertThrows(TimeOutOfRangeException.class, () -> layout.compose(Instant.MAX, 0, 0));
        assertThrows(TimeOutOfRangeException.class, () -> layout.minId(Instant.EPOCH));
    }

    @Test
    void boundsCountNanoseconds() {
        Layout layout = Layout.of("twitter");
        Instant instant = Instant.parse("2026-01-01T00:00:00.000000001Z");
        assertEquals(Instant.parse("2026-01-01T00:00:00.001Z"), layout.decode(layout.minId(instant)).time());
        assertEquals(Instant.parse("2026-01-01T00:00:00Z"), layout.decode(layout.maxId(instant)).time());
        Instant before = Instant.parse("2025-12-31T23:59:59.999999999Z");
        assertEquals(Instant.parse("2026-01-01T00:00:00Z"), layout.decode(layout.minId(before)).time());
    }

    @Test
    void composeRefusesWhatDoesNotFit() {
        Layout layout = Layout.of("twitter");
        Instant now = Instant.now();
        assertThrows(InvalidNodeException.class, () -> layout.compose(now, 1024, 0));
        assertThrows(InvalidNodeException.class, () -> layout.compose(now, -1, 0));
        assertThrows(InvalidNodeException.class, () -> layout.compose(now, Map.of("worker", 1), 0));
        assertThrows(InvalidOptionException.class, () -> layout.compose(now, 0, -1));
        assertThrows(InvalidOptionException.class, () -> layout.compose(now, 0, 4096));
        assertEquals(39, layout.decode(layout.compose(now, Map.of("datacenter", 1, "worker", 7L), 0)).node());
    }

    @Test
    void textsAreNotCutAtNul() {
        assertThrows(PolyflakeException.class, () -> Layout.of("twitter\0"));
        assertThrows(InvalidIdException.class, () -> IdFormat.DECIMAL.parse("12\0"));
        assertThrows(InvalidIdException.class, () -> IdFormat.BASE62.parse("\ud800"));
        var unknown = assertThrows(InvalidOptionException.class, () -> IdFormat.of("base63"));
        assertTrue(unknown.getMessage().contains("base62"), unknown.getMessage());
    }

    @Test
    void publicIds() {
        String key = PublicIds.generateKey(61);
        assertTrue(key.startsWith("pfk_z"));
        assertNotEquals(key, PublicIds.generateKey(61));
        assertThrows(InvalidOptionException.class, () -> PublicIds.generateKey(62));
        assertThrows(InvalidOptionException.class, () -> PublicIds.generateKey(-1));
        PublicIds ids = PublicIds.of(List.of(key, PublicIds.generateKey(0)), "order");
        for (long id : new long[] {0, 1541815603606036480L, -1}) {
            assertEquals(id, ids.decode(ids.encode(id)));
        }
        assertEquals("order", ids.prefix());
        assertFalse(ids.toString().contains(key.substring(5)));
        assertThrows(InvalidIdException.class, () -> ids.decode(ids.encode(1) + "\0"));
        assertThrows(InvalidOptionException.class, () -> PublicIds.of(List.of(), "order"));
        assertThrows(InvalidOptionException.class, () -> PublicIds.of(key, "order\ud800"));
    }
}
