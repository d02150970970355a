package io.polyflake;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.function.BooleanSupplier;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests leases, counters and sequences with an SQLite file, and with real servers if they are installed. No other test
 * uses the same nodes, because a node that was leased cannot be used without a lease.
 */
@Timeout(300)
class StoresTest {
    @TempDir
    private Path folder;

    private String sqlite(String parameters) {
        return "sqlite://" + folder.resolve("store.db") + "?" + parameters;
    }

    /** Waits until a condition is true. */
    private static void eventually(BooleanSupplier is) throws InterruptedException {
        while (!is.getAsBoolean()) {
            Thread.sleep(10);
        }
    }

    @Test
    void aLeaseGivesTheNode() throws Exception {
        String address = sqlite("nodes=800-801&wait=0s");
        try (var one = Snowflake.builder().lease(address + "&label=one").build()) {
            try (var other = Snowflake.builder().lease(address + "&label=other").layout("discord").build()) {
                assertTrue(other.node() == 800 || other.node() == 801);
            }
            assertTrue(one.node() == 800 || one.node() == 801);
            assertEquals(one.node(), one.decode(one.nextId()).node());
            Lease lease = one.lease().orElseThrow();
            assertEquals(Lease.State.HELD, lease.state());
            assertEquals(one.node(), lease.node());
            assertTrue(lease.bound().orElseThrow().isAfter(Instant.now().minusSeconds(60)));
            assertTrue(lease.left().compareTo(Duration.ofMinutes(1)) < 0);
            assertTrue(lease.store().startsWith("sqlite://"));
            assertEquals(0, one.stats().leaseLosses());
            // A Snowflake with the same address shares the lease.
            try (var same = Snowflake.builder().lease(address + "&label=one").build()) {
                assertEquals(one.node(), same.node());
            }
            assertEquals(5000, one.nextIds(5000).length);
            one.close();
            assertEquals(Lease.State.CLOSED, one.lease().orElseThrow().state());
            assertThrows(ClosedException.class, one::nextId);
        }
    }

    @Test
    void closeGivesTheNodeBack() {
        String address = sqlite("nodes=802-802&ttl=10m&wait=0s");
        for (int n = 0; n < 2; n++) {
            try (var ids = Snowflake.builder().lease(address + "&label=" + n).build()) {
                assertEquals(802, ids.node());
                assertTrue(ids.tryNextId().isPresent() || ids.nextId() > 0);
            }
        }
    }

    @Test
    void noFreeNodeIsTold() {
        String address = sqlite("nodes=803-803&ttl=10m&wait=0s");
        try (var ids = Snowflake.builder().lease(address).build()) {
            assertEquals(803, ids.node());
            var failure = assertThrows(LeaseUnavailableException.class,
                    () -> Snowflake.builder().lease(address + "&label=other").build());
            assertEquals(12, failure.code());
            boolean isHere = false;
            for (StackTraceElement frame : failure.getStackTrace()) {
                isHere |= frame.getClassName().equals(StoresTest.class.getName());
            }
            assertTrue(isHere, "the trace is the caller's");
        }
        assertThrows(InvalidOptionException.class, () -> Snowflake.builder().lease("nowhere://x").build());
    }

    /** Leases a node until its input ends. */
    static final class Holder {
        public static void main(String[] arguments) throws Exception {
            try (var ids = Snowflake.builder().lease(arguments[0]).build()) {
                System.out.println(ids.node());
                System.in.read();
            }
        }
    }

    /** Returns the location of a class, for the class path. */
    private static Path classes(Class<?> of) throws Exception {
        return Path.of(of.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    @Test
    void anInterruptEndsTheWaitForANode() throws Exception {
        String address = sqlite("nodes=804-804&ttl=10m");
        // Another process, because a call fails at once if its own process uses all the nodes.
        Process holder = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin/java").toString(),
                "--enable-native-access=ALL-UNNAMED", "-cp", classes(Snowflake.class) + ":" + classes(Holder.class),
                Holder.class.getName(), address + "&label=holder")
                .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        assertEquals("804", holder.inputReader().readLine());
        for (boolean isVirtual : new boolean[] {false, true}) {
            FutureTask<Object> building = new FutureTask<>(
                    () -> Snowflake.builder().lease(address + "&wait=10m&label=other" + isVirtual).build());
            Thread thread = isVirtual ? Thread.ofVirtual().start(building) : Thread.ofPlatform().start(building);
            thread.interrupt();
            assertInstanceOf(WaitInterruptedException.class,
                    assertThrows(ExecutionException.class, building::get).getCause());
        }
        holder.outputWriter().close();
        assertEquals(0, holder.waitFor());
        // The interrupted attempts have continued; they now take the node and give it back.
        eventually(() -> Thread.getAllStackTraces().keySet().stream()
                .noneMatch(thread -> thread.getName().matches("polyflake-(open|close)")));
        try (var ids = Snowflake.builder().lease(address + "&wait=0s&label=last").build()) {
            assertEquals(804, ids.node());
        }
    }

    @Test
    void eventsAreTold() throws Exception {
        Set<String> kinds = java.util.concurrent.ConcurrentHashMap.newKeySet();
        ConcurrentLinkedQueue<LeaseEvent> events = new ConcurrentLinkedQueue<>();
        LeaseEvents.onEvent(event -> {
            events.add(event);
            kinds.add(event.kind());
            throw new IllegalStateException("a listener that fails is called again");
        });
        try (var ids = Snowflake.builder().lease(sqlite("nodes=805-805&wait=0s")).build()) {
            assertEquals(805, ids.node());
        }
        eventually(() -> kinds.containsAll(Set.of("acquired", "released")));
        LeaseEvent acquired = events.stream().filter(event -> event.kind().equals("acquired")
                && event.node().orElse(0) == 805).findFirst().orElseThrow();
        assertFalse(acquired.isWarning());
        assertTrue(acquired.store().startsWith("sqlite://"));
        assertTrue(acquired.message().contains("805"), acquired.message());
        LeaseEvents.onEvent(event -> {});
    }

    @Test
    void aCounterCounts() {
        try (var orders = Counter.open("orders", sqlite(""))) {
            assertEquals(1, orders.nextId());
            assertEquals(2, orders.tryNextId().orElseThrow());
            assertArrayEquals(new long[] {3, 4, 5}, orders.nextIds(3));
            try (var same = Counter.open("orders", sqlite(""))) {
                assertEquals(6, same.nextId());
            }
            long[] filled = new long[500];
            orders.fill(filled);
            assertArrayEquals(LongStream.range(7, 507).toArray(), filled);
            orders.fill(new long[0]);
            long block = orders.nextBlock(2000);
            long after = orders.nextId();
            assertTrue(block > 506 && after > 506 && (after < block || after >= block + 2000));
            assertTrue(orders.stream().findFirst().orElseThrow() > after);
            Counter.Stats stats = orders.stats();
            assertTrue(stats.inHand() > 0 && stats.step() >= 100 && stats.segments() >= 2, stats.toString());
            assertEquals("orders", orders.name());
            assertTrue(orders.peek() >= block + 1999);
            orders.raise(1_000_000);
            assertEquals(1_000_001, orders.nextId());
            for (int n : new int[] {0, -1, Snowflake.MAX_BATCH + 1}) {
                assertThrows(InvalidOptionException.class, () -> orders.nextIds(n));
                assertThrows(InvalidOptionException.class, () -> orders.nextBlock(n));
            }
            assertThrows(InvalidOptionException.class, () -> orders.raise(0));
            assertTrue(orders.remove());
            assertFalse(orders.remove());
            var removed = assertThrows(CounterUnavailableException.class, orders::nextId);
            assertEquals(15, removed.code());
        }
    }

    @Test
    void aCounterGivesBackWhatItHasInHand() {
        for (int n = 1; n <= 3; n++) {
            try (var counter = Counter.open("back", sqlite(""))) {
                assertEquals(n, counter.nextId());
            }
        }
    }

    @Test
    void aClosedCounterIsClosed() {
        var counter = Counter.open("closed", sqlite(""));
        counter.close();
        counter.close();
        List<Runnable> calls = List.of(counter::nextId, counter::tryNextId, () -> counter.nextIds(2), counter::stats,
                counter::peek, counter::remove, () -> counter.raise(5), () -> counter.nextBlock(2));
        for (Runnable call : calls) {
            assertThrows(ClosedException.class, call::run);
        }
        assertEquals("closed", counter.name());
    }

    @Test
    void optionsOfCountersAreChecked() {
        assertThrows(InvalidOptionException.class, () -> Counter.builder("x").open());
        assertThrows(InvalidOptionException.class, () -> Counter.builder("").store(sqlite("")).open());
        assertThrows(InvalidOptionException.class, () -> Counter.builder("x\0").store(sqlite("")).open());
        assertThrows(InvalidOptionException.class, () -> Counter.builder("x").store(sqlite("")).step(0).open());
        assertThrows(InvalidOptionException.class, () -> Counter.builder("x").store(sqlite("")).start(0).open());
        assertThrows(InvalidOptionException.class,
                () -> Counter.builder("x").store(sqlite("")).set("node", "7").open());
        assertThrows(InvalidOptionException.class,
                () -> Counter.builder("x").store(sqlite("")).set("max_wait_ms", "soon").open());
        assertThrows(InvalidOptionException.class,
                () -> Counter.builder("x").store(sqlite("")).maxWait(Duration.ofNanos(5)).open());
        try (var counter = Counter.builder("x").store(sqlite("")).start(1000).step(10).open()) {
            assertEquals(1000, counter.nextId());
        }
    }

    @Test
    void threadsThatWaitForTheStoreAreServed() throws Exception {
        try (var counter = Counter.builder("each").store(sqlite("")).step(1).maxWait(Duration.ofMinutes(2)).open();
                var threads = Executors.newVirtualThreadPerTaskExecutor()) {
            assertTrue(counter.tryNextId().isEmpty(), "with a step of 1, none is in hand");
            List<Future<long[]>> taken = new ArrayList<>();
            for (int n = 0; n < 1000; n++) {
                boolean isBatch = n % 10 == 0;
                taken.add(threads.submit(
                        () -> isBatch ? counter.nextIds(5) : new long[] {counter.nextId(), counter.nextId()}));
            }
            Set<Long> all = new HashSet<>();
            for (Future<long[]> each : taken) {
                long[] numbers = each.get();
                for (int n = 0; n < numbers.length; n++) {
                    assertTrue(n == 0 || numbers[n - 1] < numbers[n]);
                    assertTrue(all.add(numbers[n]));
                }
            }
            assertEquals(100 * 5 + 900 * 2, all.size());
        }
    }

    @Test
    void theIdGeneratorIsEitherOfThem() {
        try (var snowflake = Snowflake.builder().node(930).build(); var counter = Counter.open("any", sqlite(""))) {
            for (IdGenerator ids : List.of(snowflake, counter)) {
                assertTrue(ids.nextId() < ids.nextIds(2)[1]);
            }
        }
    }

    @Test
    void sequencesCountForEachKey() {
        try (var inbox = Sequences.open("inbox", String.class, sqlite(""))) {
            assertEquals(1, inbox.nextId("alice"));
            assertEquals(2, inbox.nextId("alice"));
            assertEquals(1, inbox.nextId("bob"));
            assertEquals(1, inbox.nextId("5"));
            assertEquals(1, inbox.nextId(""));
            assertEquals(1, inbox.nextId("a\0b"));
            assertEquals(1, inbox.nextId("a\0c"));
            assertEquals(1, inbox.nextId("\u00e9\ud83d\ude00"));
            assertEquals(3, inbox.tryNextId("alice").orElseThrow());
            assertArrayEquals(new long[] {4, 2, 5}, inbox.nextIds(List.of("alice", "bob", "alice")));
            assertArrayEquals(new long[0], inbox.nextIds(List.of()));
            assertThrows(InvalidOptionException.class, () -> inbox.nextId("\ud800"));
            assertThrows(InvalidOptionException.class, () -> inbox.nextIds(List.of("\ud800", "alice")));
            assertEquals(6, inbox.nextId("alice"));
            long[] many = inbox.nextIds(java.util.Collections.nCopies(1000, "many"));
            assertArrayEquals(LongStream.rangeClosed(1, 1000).toArray(), many);
            assertThrows(NullPointerException.class, () -> inbox.nextId(null));
            assertEquals("inbox", inbox.name());
            Sequences.Stats stats = inbox.stats();
            assertTrue(stats.keys() >= 6 && stats.moves() >= 1 && stats.timeLeft().isPositive(), stats.toString());
            // Now test integer keys.
            try (var numbers = Sequences.open("inbox", Long.class, sqlite(""));
                    var ints = Sequences.open("inbox", Integer.class, sqlite(""))) {
                assertEquals(1, numbers.nextId(5L));
                assertEquals(2, ints.nextId(5));
                assertEquals(1, numbers.nextId(-5L));
                assertEquals(2, ints.nextId(-5));
            }
        }
        // The sequences continue above the highest number, because they were closed.
        try (var inbox = Sequences.builder("inbox", String.class).store(sqlite("")).open()) {
            assertTrue(inbox.nextId("alice") > 6);
        }
    }

    @Test
    void closedSequencesAreClosed() {
        var sequences = Sequences.open("gone", String.class, sqlite(""));
        sequences.close();
        sequences.close();
        List<Runnable> calls = List.of(() -> sequences.nextId("a"), () -> sequences.tryNextId("a"),
                () -> sequences.nextIds(List.of("a")), sequences::stats);
        for (Runnable call : calls) {
            assertThrows(ClosedException.class, call::run);
        }
    }

    private Sequences.Builder<String> small() {
        return Sequences.builder("x", String.class).store(sqlite("")).sections(4).step(10).maxKeys(100);
    }

    @Test
    void optionsOfSequencesAreChecked() {
        assertThrows(IllegalArgumentException.class, () -> Sequences.builder("x", Double.class));
        assertThrows(InvalidOptionException.class, () -> Sequences.builder("x", String.class).open());
        assertThrows(InvalidOptionException.class, () -> small().sections(0).open());
        assertThrows(InvalidOptionException.class, () -> small().step(0).open());
        assertThrows(InvalidOptionException.class, () -> small().maxKeys(0).open());
        assertThrows(InvalidOptionException.class, () -> small().set("start", "5").open());
        try (var sequences = small().maxWait(Duration.ofMinutes(1)).open()) {
            for (int n = 1; n <= 25; n++) { // past several bounds
                assertEquals(n, sequences.nextId("key"));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"redis", "postgres", "mariadb", "etcd"})
    void servers(String kind) throws Exception {
        try (StoreServer server = StoreServer.start(kind)) {
            leaseOf(server);
            counterOf(server);
            sequencesOf(server);
            wrongPassword(server);
            withoutATurn(server);
            interruptedWaits(server);
        }
    }

    /** Takes an ID, if there is one and the lease is held: a lease ends if the process stands still for a TTL. */
    private static boolean isIssued(Snowflake ids) {
        try {
            return ids.tryNextId().isPresent();
        } catch (LeaseLostException notYet) {
            return false;
        }
    }

    private static void leaseOf(StoreServer server) throws InterruptedException {
        String address = server.address("namespace=leases&nodes=810-811&ttl=3s&wait=60s");
        try (var ids = Snowflake.builder().lease(address).maxWait(Duration.ZERO).build()) {
            eventually(() -> isIssued(ids));
            assertFalse(ids.lease().orElseThrow().store().contains(StoreServer.SECRET));
            server.kill();
            Set<Long> taken = new HashSet<>();
            LeaseLostException[] lost = new LeaseLostException[1];
            eventually(() -> {
                try {
                    ids.tryNextId().ifPresent(id -> assertTrue(taken.add(id)));
                    return false;
                } catch (LeaseLostException exception) {
                    lost[0] = exception;
                    return true;
                }
            });
            assertFalse(lost[0].getMessage().contains(StoreServer.SECRET));
            server.startAgain();
            eventually(() -> isIssued(ids));
            // More than one if the process itself stood still for a TTL.
            assertTrue(ids.stats().leaseLosses() >= 1);
        }
    }

    private static void counterOf(StoreServer server) throws Exception {
        String address = server.address("namespace=counters");
        var soon = Counter.builder("down").store(address).step(1).maxWait(Duration.ofMillis(200));
        try (var kept = Counter.builder("kept").store(address).step(1000).maxWait(Duration.ofMinutes(1)).open();
                var patient = Counter.builder("down").store(address).step(1).maxWait(Duration.ofMinutes(1)).open();
                var counter = soon.open()) { // opens at once, because the other one is open
            assertEquals(1, patient.nextId());
            server.kill();
            assertArrayEquals(LongStream.rangeClosed(1, 100).toArray(), kept.nextIds(100));
            assertThrows(CounterUnavailableException.class, counter::nextId);
            server.startAgain();
            assertTrue(patient.nextId() > 1);
        }
    }

    private static void sequencesOf(StoreServer server) {
        try (var inbox = Sequences.open("inbox", Long.class, server.address("namespace=sequences"))) {
            assertEquals(1, inbox.nextId(7L));
            assertEquals(2, inbox.nextId(7L));
        }
    }

    private static void wrongPassword(StoreServer server) {
        var refused = assertThrows(LeaseUnavailableException.class, () -> Snowflake.builder()
                .lease(server.address("wait=0s").replace(StoreServer.SECRET, "hunter2")).build());
        assertFalse(refused.getMessage().contains("hunter2"), refused.getMessage());
    }

    /**
     * Tests that calls waiting for a stopped store return after an interrupt or a close, and that virtual threads
     * release their carriers.
     */
    private static void interruptedWaits(StoreServer server) throws Exception {
        String address = server.address("namespace=waits");
        var counter = Counter.builder("waits").store(address).step(1).maxWait(Duration.ofHours(1)).open();
        server.kill();
        int many = 4 * Runtime.getRuntime().availableProcessors();
        List<Callable<Object>> calls = List.of(counter::nextId, () -> counter.nextIds(3), () -> counter.nextBlock(3));
        for (Callable<Object> call : calls) {
            List<FutureTask<Object>> waiting = new ArrayList<>();
            List<Thread> threads = new ArrayList<>();
            for (int n = 0; n < many; n++) {
                CountDownLatch begun = new CountDownLatch(1);
                FutureTask<Object> task = new FutureTask<>(() -> {
                    begun.countDown();
                    return call.call();
                });
                waiting.add(task);
                threads.add(n == 0 ? Thread.ofPlatform().start(task) : Thread.ofVirtual().start(task));
                begun.await();
            }
            for (int n = 0; n < many / 2; n++) {
                threads.get(n).interrupt();
                assertInstanceOf(WaitInterruptedException.class,
                        assertThrows(ExecutionException.class, waiting.get(n)::get).getCause());
            }
            assertFalse(waiting.getLast().isDone());
            threads.subList(many / 2, many).forEach(Thread::interrupt);
        }
        Future<Long> last = new FutureTask<>(counter::nextId);
        Thread.ofVirtual().start((FutureTask<Long>) last);
        counter.close();
        assertInstanceOf(ClosedException.class, assertThrows(ExecutionException.class, last::get).getCause());
        server.startAgain();
    }

    /** Tests that a call to the store fails if it gets no turn, even if numbers are in hand. */
    private static void withoutATurn(StoreServer server) throws Exception {
        var turns = Counter.builder("turns").store(server.address("namespace=turns")).step(100);
        var patient = turns.maxWait(Duration.ofMinutes(1)).open();
        assertEquals(1, patient.nextId());
        var counter = turns.maxWait(Duration.ofSeconds(2)).open(); // opens at once, because the other one is open
        server.kill();
        assertUnavailable(List.of(() -> counter.nextBlock(5000), counter::peek));
        assertArrayEquals(new long[] {2, 3, 4, 5, 6}, counter.nextIds(5));
        assertUnavailable(List.of(counter::remove, () -> {
            counter.raise(5000);
            return null;
        }));
        server.startAgain();
        counter.close();
        patient.close();
    }

    /** Makes more calls than may query the store at the same time. */
    private static void assertUnavailable(List<Callable<Object>> calls) {
        List<FutureTask<Object>> waiting = new ArrayList<>();
        for (int n = 0; n < 80; n++) {
            FutureTask<Object> task = new FutureTask<>(calls.get(n % calls.size()));
            waiting.add(task);
            Thread.ofVirtual().start(task);
        }
        for (FutureTask<Object> task : waiting) {
            assertInstanceOf(CounterUnavailableException.class,
                    assertThrows(ExecutionException.class, task::get).getCause());
        }
    }
}
