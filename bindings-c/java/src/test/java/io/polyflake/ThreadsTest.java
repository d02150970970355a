package io.polyflake;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
class ThreadsTest {
    /** A layout with 16 IDs per tick, so that all threads wait. */
    private static final String SMALL = "timestamp:41|node:10|sequence:4@1767225600000/1ms";
    /** A layout whose tick is an hour, so that a call waits until something ends the wait. */
    private static final String FULL = "timestamp:31|node:10|sequence:1@1767225600000/3600s";

    private static long[] takenBy(ExecutorService threads, int count, Callable<long[]> take) throws Exception {
        try (threads) {
            List<Future<long[]>> taken = new ArrayList<>();
            for (int n = 0; n < count; n++) {
                taken.add(threads.submit(take));
            }
            List<long[]> all = new ArrayList<>();
            for (Future<long[]> each : taken) {
                long[] ids = each.get();
                for (int n = 1; n < ids.length; n++) {
                    assertTrue(ids[n - 1] < ids[n], "a thread's IDs increase");
                }
                all.add(ids);
            }
            return all.stream().flatMapToLong(LongStream::of).toArray();
        }
    }

    private static void assertDistinct(int count, long[] ids) {
        assertEquals(count, ids.length);
        assertEquals(count, Arrays.stream(ids).distinct().count());
    }

    @Test
    void platformThreadsNeverRepeat() throws Exception {
        try (var ids = Snowflake.builder().node(910).build()) {
            assertDistinct(8 * 20_000, takenBy(Executors.newFixedThreadPool(8), 8,
                    () -> LongStream.generate(ids::nextId).limit(20_000).toArray()));
        }
    }

    @Test
    void tenThousandVirtualThreadsNeverRepeat() throws Exception {
        try (var ids = Snowflake.builder().node(911).build()) {
            assertDistinct(10_000 * 10, takenBy(Executors.newVirtualThreadPerTaskExecutor(), 10_000,
                    () -> LongStream.generate(ids::nextId).limit(10).toArray()));
        }
    }

    @Test
    void virtualThreadsThatWaitAreServed() throws Exception {
        try (var ids = Snowflake.builder().layout(SMALL).node(912).maxWait(Duration.ofMinutes(1)).build()) {
            assertDistinct(2000 * 4, takenBy(Executors.newVirtualThreadPerTaskExecutor(), 2000,
                    () -> new long[] {ids.nextId(), ids.nextId(), ids.nextId(), ids.nextId()}));
            assertTrue(ids.stats().waits() > 0);
        }
    }

    @Test
    void batchesThatWaitAreServed() throws Exception {
        try (var ids = Snowflake.builder().layout(SMALL).node(913).maxWait(Duration.ofMinutes(1)).build()) {
            assertDistinct(20 * 100, takenBy(Executors.newVirtualThreadPerTaskExecutor(), 20, () -> ids.nextIds(100)));
        }
    }

    /** There are more threads than carriers, and no wait ends on its own. */
    @Test
    void aWaitingVirtualThreadLeavesItsCarrier() throws Exception {
        int many = 10 * Runtime.getRuntime().availableProcessors();
        try (var ids = full(914)) {
            List<Task> waiting = new ArrayList<>();
            for (int n = 0; n < many; n++) {
                waiting.add(Task.started(true, ids::nextId));
            }
            Thread.ofVirtual().start(() -> {}).join();
            assertEquals(0, waiting.stream().filter(task -> task.future.isDone()).count());
            ids.close();
            for (Task task : waiting) {
                assertInstanceOf(ClosedException.class, task.failure());
            }
        }
    }

    /** Creating a state file takes the library a second, during which a virtual thread would block its carrier. */
    @Test
    void aVirtualThreadBuildsWithAStateFileElsewhere(@TempDir Path folder) throws Exception {
        List<Boolean> areVirtual = new CopyOnWriteArrayList<>();
        Task task = Task.started(true, () -> {
            Snowflake.builder().node(919).state(folder.resolve("state")).clock(() -> {
                areVirtual.add(Thread.currentThread().isVirtual());
                return Instant.now();
            }).build().close();
            return null;
        });
        task.future.get();
        assertFalse(areVirtual.isEmpty() || areVirtual.contains(true), areVirtual.toString());
    }

    /** Returns a Snowflake whose two IDs for this hour have been taken. */
    private static Snowflake full(int node) {
        // The clock stands still, so only the test can end a wait.
        Snowflake ids = Snowflake.builder().layout(FULL).node(node).maxWait(Duration.ofDays(1))
                .clock(() -> Instant.parse("2026-06-01T00:00:00Z")).build();
        while (ids.tryNextId().isPresent()) {
            // take the next one
        }
        return ids;
    }

    private record Task(Thread thread, FutureTask<Object> future) {
        static Task started(boolean isVirtual, Callable<Object> call) throws InterruptedException {
            CountDownLatch begun = new CountDownLatch(1);
            FutureTask<Object> future = new FutureTask<>(() -> {
                begun.countDown();
                return call.call();
            });
            Thread thread = isVirtual ? Thread.ofVirtual().start(future) : Thread.ofPlatform().daemon().start(future);
            begun.await();
            return new Task(thread, future);
        }

        Throwable failure() {
            return assertThrows(ExecutionException.class, future::get).getCause();
        }
    }

    @Test
    void anInterruptEndsTheWait() throws Exception {
        try (var ids = full(915)) {
            List<Callable<Object>> calls = List.of(ids::nextId, () -> ids.nextIds(2));
            for (boolean isVirtual : new boolean[] {false, true}) {
                for (Callable<Object> call : calls) {
                    AtomicBoolean wasInterrupted = new AtomicBoolean();
                    Task task = Task.started(isVirtual, () -> {
                        try {
                            return call.call();
                        } finally {
                            wasInterrupted.set(Thread.currentThread().isInterrupted());
                        }
                    });
                    task.thread.interrupt();
                    assertInstanceOf(WaitInterruptedException.class, task.failure());
                    assertTrue(wasInterrupted.get(), "the flag is still set");
                }
            }
        }
    }

    @Test
    void aCallThatNeedNotWaitDoesNotMindTheFlag() throws Exception {
        try (var ids = Snowflake.builder().node(7).clock(Instant::now).build()) {
            Task task = Task.started(false, () -> {
                Thread.currentThread().interrupt();
                return ids.nextId();
            });
            assertTrue((long) task.future.get() > 0);
        }
    }

    @Test
    void aCallThatFailsDoesNotMindTheFlag() throws Exception {
        var closed = Snowflake.builder().node(7).build();
        closed.close();
        Task task = Task.started(false, () -> {
            Thread.currentThread().interrupt();
            return closed.nextId();
        });
        assertInstanceOf(ClosedException.class, task.failure());
        try (var ids = Snowflake.builder().layout("baidu").node(7).build()) {
            Task late = Task.started(false, () -> {
                Thread.currentThread().interrupt();
                return ids.nextId();
            });
            assertInstanceOf(TimeOutOfRangeException.class, late.failure());
        }
    }

    /** On a built-in clock, the tick in which the cursor was created is used up from the start. */
    @Test
    void aWaitIsCountedOnce() {
        try (var ids = Snowflake.builder().layout(FULL).node(918).maxWait(Duration.ofMillis(1)).build()) {
            for (int n = 1; n <= 3; n++) {
                try {
                    ids.nextId();
                    return; // the hour has just ended
                } catch (SequenceExhaustedException exhausted) {
                    assertEquals(n, ids.stats().waits());
                }
            }
        }
    }

    @Test
    void closeEndsWaits() throws Exception {
        for (boolean isVirtual : new boolean[] {false, true}) {
            var ids = full(916);
            Task one = Task.started(isVirtual, ids::nextId);
            Task batch = Task.started(isVirtual, () -> ids.nextIds(3));
            ids.close();
            assertInstanceOf(ClosedException.class, one.failure());
            assertInstanceOf(ClosedException.class, batch.failure());
        }
    }

    @Test
    void closeAmidCalls() throws Exception {
        for (int round = 0; round < 50; round++) {
            var ids = Snowflake.builder().node(917).build();
            CountDownLatch taken = new CountDownLatch(4);
            List<Task> tasks = new ArrayList<>();
            for (int n = 0; n < 4; n++) {
                tasks.add(Task.started(n % 2 == 0, () -> {
                    ids.nextId();
                    taken.countDown();
                    while (true) {
                        ids.nextId();
                        ids.nextIds(100);
                    }
                }));
            }
            taken.await();
            ids.close();
            for (Task task : tasks) {
                assertInstanceOf(ClosedException.class, task.failure());
            }
        }
    }

    @Test
    void aDroppedSnowflakeIsCollected() throws Exception {
        List<WeakReference<Snowflake>> dropped = new ArrayList<>();
        for (int n = 0; n < 10; n++) {
            Snowflake ids = Snowflake.builder().node(7).clock(Instant::now).build();
            ids.nextId();
            dropped.add(new WeakReference<>(ids));
        }
        for (WeakReference<Snowflake> each : dropped) {
            while (each.get() != null) {
                System.gc();
                Thread.sleep(1);
            }
            assertNull(each.get());
        }
    }

    @Test
    void oneInUseIsNotFreed() throws Exception {
        Task task = Task.started(false, () -> {
            long last = 0;
            for (int n = 0; n < 200; n++) {
                // Only the call refers to the Snowflake.
                last = Snowflake.builder().node(7).clock(() -> {
                    System.gc();
                    return Instant.now();
                }).build().nextId();
            }
            return last;
        });
        assertTrue((long) task.future.get() > 0);
    }
}
