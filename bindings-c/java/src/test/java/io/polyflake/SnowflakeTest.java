package io.polyflake;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SnowflakeTest {
    private static final Instant NOW = Instant.parse("2026-01-01T00:00:00Z");

    /** Returns a builder whose clock stands still, so the Snowflake has its own cursor. */
    private static Snowflake.Builder still() {
        return Snowflake.builder().node(7).clock(Clock.fixed(NOW, ZoneOffset.UTC)).maxWait(Duration.ZERO);
    }

    @Test
    void idsIncreaseAndHaveTheNode() {
        try (var ids = Snowflake.builder().node(Map.of("datacenter", 1, "worker", 7)).build()) {
            long before = ids.nextId();
            for (int n = 0; n < 10_000; n++) {
                long id = ids.nextId();
                assertTrue(id > before);
                before = id;
            }
            assertEquals(39, ids.node());
            assertEquals(Map.of("datacenter", 1L, "worker", 7L), ids.decode(before).fields());
            assertEquals(Layout.of("twitter"), ids.layout());
        }
    }

    @Test
    void aFixedClockGivesFixedIds() {
        try (var ids = still().sequenceStart("zero").build()) {
            assertEquals(2006515713438674944L, ids.nextId());
            assertEquals(2006515713438674945L, ids.tryNextId().orElseThrow());
            assertEquals(2006515713438674946L, ids.nextIds(2)[0]);
            assertEquals(2006515713438674948L, ids.stream().limit(3).toArray()[0]);
        }
    }

    @Test
    void batchesOfEverySizeIncrease() {
        try (var ids = Snowflake.builder().node(901).build()) {
            long last = 0;
            for (int size : new int[] {1, 2, 4095, 4096, 4097, 16_384, 16_385, 50_000}) {
                for (long id : ids.nextIds(size)) {
                    assertTrue(id > last);
                    last = id;
                }
            }
            ids.fill(new long[0]);
        }
    }

    @Test
    void batchesFromACallersClockIncrease() {
        AtomicLong now = new AtomicLong(NOW.toEpochMilli());
        try (var ids = Snowflake.builder().node(7).clock(() -> Instant.ofEpochMilli(now.getAndIncrement())).build()) {
            long last = 0;
            for (int size : new int[] {1, 4096, 4097, 16_385, 50_000}) {
                for (long id : ids.nextIds(size)) {
                    assertTrue(id > last);
                    last = id;
                }
            }
        }
    }

    @Test
    void segmentsAreFilled() {
        try (var ids = Snowflake.builder().node(902).build(); Arena arena = Arena.ofConfined()) {
            MemorySegment room = arena.allocate(ValueLayout.JAVA_LONG, 10_000);
            ids.fill(room);
            MemorySegment onHeap = MemorySegment.ofArray(new long[10]);
            ids.fill(onHeap.asSlice(8));
            assertEquals(0, onHeap.get(ValueLayout.JAVA_LONG, 0));
            long last = 0;
            for (int n = 0; n < 10_000; n++) {
                long id = room.getAtIndex(ValueLayout.JAVA_LONG, n);
                assertTrue(id > last);
                last = id;
            }
            assertTrue(onHeap.getAtIndex(ValueLayout.JAVA_LONG, 1) > last);
            assertThrows(IllegalArgumentException.class, () -> ids.fill(room.asSlice(0, 12)));
            assertThrows(IllegalArgumentException.class, () -> ids.fill(room.asSlice(4, 8)));
            assertThrows(IllegalArgumentException.class, () -> ids.fill(room.asReadOnly()));
            assertThrows(IllegalArgumentException.class, () -> ids.fill(MemorySegment.ofArray(new byte[8])));
        }
    }

    @Test
    void batchesHaveLimits() {
        try (var ids = still().build()) {
            assertThrows(InvalidOptionException.class, () -> ids.nextIds(0));
            assertThrows(InvalidOptionException.class, () -> ids.nextIds(-1));
            assertThrows(InvalidOptionException.class, () -> ids.nextIds(Snowflake.MAX_BATCH + 1));
            assertThrows(SequenceExhaustedException.class, () -> ids.nextIds(Snowflake.MAX_BATCH));
        }
    }

    @Test
    void exhaustionSaysWhenToTryAgain() {
        try (var ids = still().layout("timestamp:41|worker:10|sequence:12@0/1s").build()) {
            ids.nextIds(4096 - (int) ids.decode(ids.nextId()).sequence() - 1);
            assertTrue(ids.tryNextId().isEmpty());
            var exhausted = assertThrows(SequenceExhaustedException.class, ids::nextId);
            assertEquals(8, exhausted.code());
            assertEquals("sequence_exhausted", exhausted.name());
            assertEquals(Duration.ofSeconds(1), exhausted.retryAfter());
            assertEquals(Duration.ZERO, exhausted.behind());
            assertEquals(2, ids.stats().waits());
        }
    }

    @Test
    void aStepBackOfTheClockIsTold() {
        AtomicLong now = new AtomicLong(NOW.toEpochMilli());
        try (var ids = Snowflake.builder().node(7).clock(() -> Instant.ofEpochMilli(now.get())).build()) {
            ids.nextId();
            now.addAndGet(-5000);
            var backwards = assertThrows(ClockMovedBackwardsException.class, ids::nextId);
            assertEquals(Duration.ofSeconds(5), backwards.behind());
            assertTrue(ids.stats().rollbacks() > 0);
            assertEquals(NOW, ids.stats().lastIssued().orElseThrow());
        }
    }

    @Test
    void stats() {
        try (var ids = still().build()) {
            assertTrue(ids.stats().lastIssued().isEmpty());
            ids.nextId();
            assertEquals(NOW, ids.stats().lastIssued().orElseThrow());
            assertEquals(0, ids.stats().leaseLosses());
            assertTrue(ids.lease().isEmpty());
        }
    }

    @Test
    void anExceptionOfTheClockIsTheCause() {
        RuntimeException thrown = new RuntimeException("no time");
        AtomicInteger readings = new AtomicInteger();
        InstantSource clock = () -> {
            if (readings.incrementAndGet() > 1) {
                throw thrown;
            }
            return NOW;
        };
        try (var ids = Snowflake.builder().node(7).clock(clock).build()) {
            ids.nextId();
            List<Runnable> calls = List.of(ids::nextId, ids::tryNextId, () -> ids.nextIds(10), ids::stats);
            for (Runnable call : calls) {
                var failed = assertThrows(ClockFailedException.class, call::run);
                assertSame(thrown, failed.getCause());
                assertEquals(10, failed.code());
            }
        }
        // A failure of one call must not show up in another.
        AtomicInteger again = new AtomicInteger();
        try (var ids = Snowflake.builder().node(7).maxWait(Duration.ZERO).clock(() -> {
            if (again.getAndIncrement() == 0) {
                throw thrown;
            }
            return NOW;
        }).build()) {
            assertSame(thrown, assertThrows(ClockFailedException.class, ids::nextId).getCause());
            ids.nextIds(4096 - (int) ids.decode(ids.nextId()).sequence() - 1);
            assertEquals(null, assertThrows(SequenceExhaustedException.class, ids::nextId).getCause());
        }
    }

    @Test
    void aClockOutOfRangeIsACauseToo() {
        try (var ids = Snowflake.builder().node(7).clock(() -> Instant.MAX).build()) {
            var failed = assertThrows(ClockFailedException.class, ids::nextId);
            assertEquals(ArithmeticException.class, failed.getCause().getClass());
        }
        try (var ids = Snowflake.builder().node(7).clock(() -> null).build()) {
            var failed = assertThrows(ClockFailedException.class, ids::nextId);
            assertEquals(NullPointerException.class, failed.getCause().getClass());
        }
    }

    @Test
    void anErrorOfTheClockComesOut() {
        AssertionError thrown = new AssertionError("stop");
        try (var ids = Snowflake.builder().node(7).clock(() -> {
            throw thrown;
        }).build()) {
            assertSame(thrown, assertThrows(AssertionError.class, ids::nextId));
        }
    }

    @Test
    void aClockMayTakeIds() {
        try (var others = still().build()) {
            List<Long> taken = new ArrayList<>();
            try (var ids = Snowflake.builder().node(7).clock(() -> {
                taken.add(others.nextId());
                return NOW;
            }).build()) {
                ids.nextId();
                ids.nextId();
            }
            assertTrue(taken.size() >= 2);
        }
    }

    @Test
    void closedIsClosed() {
        var ids = still().build();
        long id = ids.nextId();
        ids.close();
        ids.close();
        List<Runnable> calls =
                List.of(ids::nextId, ids::tryNextId, () -> ids.nextIds(2), ids::stats, () -> ids.fill(new long[2]));
        for (Runnable call : calls) {
            var closed = assertThrows(ClosedException.class, call::run);
            assertEquals(14, closed.code());
        }
        assertEquals(7, ids.node());
        assertEquals(7, ids.decode(id).node());
        assertTrue(ids.lease().isEmpty());
        assertTrue(ids.toString().contains("node=7"));

        var builtin = Snowflake.builder().node(903).build();
        builtin.close();
        assertThrows(ClosedException.class, builtin::nextId);
        assertThrows(ClosedException.class, () -> builtin.nextIds(2));
    }

    @Test
    void valuesAreCheckedByTheLibrary() {
        assertThrows(InvalidNodeException.class, () -> Snowflake.builder().build());
        assertThrows(InvalidNodeException.class, () -> Snowflake.builder().node(1024).build());
        assertThrows(InvalidNodeException.class, () -> Snowflake.builder().node(-1).build());
        assertThrows(InvalidNodeException.class, () -> Snowflake.builder().node(Map.of("worker", 7)).build());
        assertThrows(InvalidNodeException.class, () -> Snowflake.builder().node(Map.<String, Integer>of()).build());
        assertThrows(InvalidNodeException.class,
                () -> Snowflake.builder().node(Map.of("datacenter", 1.5, "worker", 7)).build());
        assertThrows(UnknownLayoutException.class, () -> Snowflake.builder().node(7).layout("twiter").build());
        assertThrows(InvalidOptionException.class, () -> still().maxWait(Duration.ofNanos(1)).build());
        assertThrows(InvalidOptionException.class, () -> still().maxWait(Duration.ofMillis(-1)).build());
        assertThrows(InvalidOptionException.class, () -> still().maxAhead(Duration.ofDays(50)).build());
        assertThrows(InvalidOptionException.class, () -> still().set("colour", "red").build());
        assertThrows(InvalidOptionException.class, () -> still().sequenceStart("ze\0ro").build());
        assertThrows(InvalidOptionException.class, () -> still().sequenceStart("zero\ud800").build());
        assertThrows(InvalidOptionException.class, () -> still().lease("redis://host/0").build());
        assertDoesNotThrow(() -> still().maxAhead(Duration.ofMillis(4294967295L)).maxBackward(Duration.ZERO).build());
    }

    @Test
    void nullsAreRefusedByName() {
        var builder = Snowflake.builder();
        Map<String, Runnable> calls = Map.ofEntries(
                Map.entry("layout", () -> builder.layout((Layout) null)),
                Map.entry("node", () -> builder.node((String) null)),
                Map.entry("fields", () -> builder.node((Map<String, Integer>) null)),
                Map.entry("max_wait_ms", () -> builder.maxWait(null)),
                Map.entry("clock", () -> builder.clock(null)),
                Map.entry("path", () -> builder.state(null)),
                Map.entry("lease", () -> builder.lease(null)),
                Map.entry("name", () -> builder.set(null, "")),
                Map.entry("nameOrText", () -> Layout.of(null)),
                Map.entry("time", () -> Layout.of("twitter").minId(null)),
                Map.entry("text", () -> IdFormat.HEX.parse(null)),
                Map.entry("keys", () -> PublicIds.of((String) null, "")),
                Map.entry("prefix", () -> PublicIds.of("", null)),
                Map.entry("store", () -> Counter.builder("x").store(null)));
        calls.forEach((what, call) ->
                assertEquals(what, assertThrows(NullPointerException.class, call::run).getMessage()));
        assertThrows(NullPointerException.class, () -> still().build().fill((long[]) null));
        assertThrows(NullPointerException.class, () -> still().build().fill((MemorySegment) null));
    }

    @Test
    void aBuilderMayBeUsedAgain() {
        var builder = still().sequenceStart("zero");
        long first = builder.build().nextId();
        assertEquals(first, builder.build().nextId());
        long other = builder.node(8).build().nextId();
        assertEquals(8, Layout.of("twitter").decode(other).node());
        // The last node set wins, whatever its form.
        Map<String, Integer> fields = Map.of("datacenter", 1, "worker", 7);
        assertEquals(39, builder.node(Map.of("datacenter", 2, "worker", 8)).node(fields).build().node());
        assertEquals(9, builder.node("9").build().node());
    }

    @Test
    void aStateFileHoldsTheNode(@TempDir Path folder) {
        Path file = folder.resolve("a state \u00e9");
        long last;
        try (var ids = Snowflake.builder().node(905).state(file).layout("discord").build()) {
            last = ids.nextId();
        }
        assertThrows(StateFileException.class,
                () -> Snowflake.builder().node(8).state(file).layout("discord").build());
        try (var ids = Snowflake.builder().node(905).state(file).layout("discord").build()) {
            assertTrue(ids.nextId() > last);
            // This is more than fits in a tick, so the call waits, and the cursor on disk moves.
            assertEquals(20_000, ids.nextIds(20_000).length);
        }
        Snowflake.resetState(file);
        assertThrows(StateFileException.class, () -> Snowflake.resetState(folder.resolve("none")));
    }

    @Test
    void aClockFailureWhileBuildingIsTheCause(@TempDir Path folder) {
        RuntimeException thrown = new RuntimeException("no time");
        var failed = assertThrows(ClockFailedException.class, () -> Snowflake.builder().node(906)
                .state(folder.resolve("state")).clock(() -> {
                    throw thrown;
                }).build());
        assertSame(thrown, failed.getCause());
    }

    @Test
    void aSteadyClockGivesIds() {
        try (var ids = Snowflake.builder().node(904).steadyClock().build()) {
            assertTrue(ids.nextId() < ids.nextId());
        }
        // The last clock set wins.
        try (var ids = still().steadyClock().node(904).build()) {
            assertFalse(ids.decode(ids.nextId()).time().equals(NOW));
        }
    }

    @Test
    void theLibraryHasAVersion() {
        assertTrue(Snowflake.libraryVersion().matches("\\d+\\.\\d+\\.\\d+"));
    }
}
