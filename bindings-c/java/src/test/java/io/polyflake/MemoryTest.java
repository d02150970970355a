package io.polyflake;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests, in a process with a small heap, that an object is freed once nothing refers to it. */
class MemoryTest {
    private static final int ROUNDS = 20;
    private static final int FIRST_ROUNDS = 4;
    /**
     * Kept low, because on a busy machine, sometimes none of a round's objects are freed before the round ends.
     */
    private static final int MADE = 5_000;
    private static final Path STATUS = Path.of("/proc/self/status");

    /** Prints how many KiB the process has grown since the first rounds. */
    static final class Child {
        private Child() {}

        public static void main(String[] arguments) throws Exception {
            String key = PublicIds.generateKey(0);
            long first = 0;
            for (int round = 1; round <= ROUNDS; round++) {
                for (int n = 0; n < MADE; n++) {
                    switch (arguments[0]) {
                        case "snowflakes" -> Snowflake.builder().node(7).build();
                        case "clocks" -> Snowflake.builder().node(7).clock(Instant::now).build();
                        case "layouts" -> Layout.of("twitter");
                        case "public IDs" -> PublicIds.of(key, "order");
                        default -> throw new IllegalArgumentException(arguments[0]);
                    }
                }
                System.gc();
                awaitCleaner();
                if (round == FIRST_ROUNDS) {
                    first = residentKib();
                }
            }
            System.out.println(residentKib() - first);
        }

        /** Waits until the cleaner's thread has been seen waiting for work five times in a row. */
        private static void awaitCleaner() throws Exception {
            long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
            for (int idle = 0; idle < 5 && System.nanoTime() < end; ) {
                Thread.sleep(10);
                boolean isIdle = Thread.getAllStackTraces().keySet().stream()
                        .filter(each -> each.getName().startsWith("Cleaner-"))
                        .allMatch(each -> each.getState() == Thread.State.TIMED_WAITING);
                idle = isIdle ? idle + 1 : 0;
            }
        }

        private static long residentKib() throws Exception {
            String line = Files.readAllLines(STATUS).stream().filter(each -> each.startsWith("VmRSS")).findFirst()
                    .orElseThrow();
            return Long.parseLong(line.replaceAll("\\D", ""));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"snowflakes", "clocks", "layouts", "public IDs"})
    void memoryComesBack(String made) throws Exception {
        Assumptions.assumeTrue(Files.exists(STATUS), "no " + STATUS);
        var location = MemoryTest.class.getProtectionDomain().getCodeSource().getLocation();
        String path = Path.of(Snowflake.class.getProtectionDomain().getCodeSource().getLocation().toURI())
                + ":" + Path.of(location.toURI());
        Process process = new ProcessBuilder(List.of(Path.of(System.getProperty("java.home"), "bin/java").toString(),
                "-Xms48m", "-Xmx48m", "-XX:+UseSerialGC", "-XX:+AlwaysPreTouch", "-cp", path, Child.class.getName(),
                made))
                .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        String grown = new String(process.getInputStream().readAllBytes()).strip();
        assertEquals(0, process.waitFor());
        // If nothing were freed, this would be at least 27 MiB; layouts take up the least.
        assertTrue(Long.parseLong(grown) < 16 * 1024, grown + " KiB more");
    }
}
