package polyflake.benchmarks;

import io.polyflake.Layout;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;
import polyflake.benchmarks.Subjects.Subject;

/**
 * The cost of an ID in Java, with other packages and floors, as JSON Lines (benchmarks/README.md).
 *
 * <pre>java polyflake.benchmarks.Main [--rounds 9]</pre>
 *
 * JMH starts a JVM for each subject and measures several rounds in it. Once all subjects
 * have run, the first gets its next JVM.
 */
public final class Main {
    private static final int ROUNDS_PER_JVM = 5;
    private static final int CHECKED = 200_000;

    private record Row(String table, String method, Subject<?> subject, int threads, boolean isVirtual,
            List<Double> rounds) {
        void measure(int rounds) throws RunnerException {
            var options = new OptionsBuilder()
                    .include("Measured\\." + method + "$")
                    .param("subject", subject.name())
                    .threads(threads)
                    .forks(1)
                    .warmupIterations(3)
                    .warmupTime(TimeValue.milliseconds(200))
                    .measurementIterations(rounds)
                    .measurementTime(TimeValue.milliseconds(100))
                    .jvmArgsAppend("-Djmh.executor=" + (isVirtual ? "VIRTUAL" : "PLATFORM"))
                    // By default, JMH waits for 30 s for the threads that some peers leave behind.
                    .jvmArgsAppend("-Djmh.shutdownTimeout=1", "-Djmh.shutdownTimeout.step=1")
                    .shouldFailOnError(true)
                    .verbosity(VerboseMode.SILENT)
                    .build();
            for (var iteration : new Runner(options).runSingle().getAggregatedResult().getIterationResults()) {
                // The score is the mean of each thread, and the threads take IDs at the same time.
                rounds().add(iteration.getPrimaryResult().getScore() / threads);
            }
        }

        void print() throws Exception {
            String check = subject.layout() != null ? check(this) : "";
            OUT.println(RESULT.formatted(table, subject.name(), version(subject), rounds, check));
        }
    }

    private static final String RESULT = """
            {"kind":"result","language":"Java","table":"%s","subject":"%s","version":"%s","rounds":%s%s}""";
    private static final String MISSING = """
            {"kind":"missing","language":"Java","subject":"%s","version":"%s","why":"%s"}""";

    /** Prints only the results: JMH prints its JVMs' warnings to System.out, which is silenced. */
    private static final PrintStream OUT = System.out;

    public static void main(String[] args) throws Exception {
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        // Otherwise JMH starts another JVM before each measurement, to find out.
        System.setProperty("jmh.blackhole.mode", "COMPILER");
        System.setProperty("jmh.ignoreLock", "true");
        int rounds = args.length == 2 && args[0].equals("--rounds") ? Integer.parseInt(args[1]) : 9;
        List<Row> rows = new ArrayList<>();
        for (var subject : Subjects.GENERATORS) {
            rows.add(new Row("one ID", "ids", subject, 1, false, new ArrayList<>()));
        }
        for (boolean isVirtual : List.of(false, true)) {
            String table = isVirtual ? "two virtual threads, one generator" : "two threads, one generator";
            for (var subject : Subjects.GENERATORS) {
                if (!subject.isFloor()) {
                    rows.add(new Row(table, "ids", subject, 2, isVirtual, new ArrayList<>()));
                }
            }
        }
        for (var subject : Subjects.DECODERS) {
            rows.add(new Row("decode", "decoded", subject, 1, false, new ArrayList<>()));
        }

        Set<Subject<?>> missing = new LinkedHashSet<>();
        for (int done = 0; done < rounds; done += ROUNDS_PER_JVM) {
            System.err.println("Java: round " + (done + 1) + " of " + rounds);
            for (Row row : rows) {
                try {
                    row.measure(Math.min(ROUNDS_PER_JVM, rounds - done));
                } catch (RunnerException failed) {
                    System.err.println("Java: " + row.subject.name() + ": " + failed);
                    missing.add(row.subject);
                }
            }
        }
        System.err.println("Java: checking for repeated IDs");
        for (Row row : rows) {
            if (!missing.contains(row.subject)) {
                row.print();
            }
        }
        for (var subject : missing) {
            OUT.println(MISSING.formatted(subject.name(), version(subject), "does not run"));
        }
        // Some peers leave threads behind.
        System.exit(0);
    }

    /** Takes IDs as fast as possible, counts repeated ones, and measures how far their time was ahead of the clock. */
    private static String check(Row row) throws Exception {
        LongSupplier ids = Subjects.generator(row.subject.name()).create().call();
        Layout layout = Layout.of(row.subject.layout());
        long[] taken = new long[CHECKED];
        AtomicLong ahead = new AtomicLong();
        int each = CHECKED / row.threads;
        List<Thread> threads = new ArrayList<>();
        for (int first = 0; first < CHECKED; first += each) {
            int from = first;
            Runnable take = () -> {
                for (int i = from; i < from + each; i++) {
                    taken[i] = ids.getAsLong();
                    if (i % 64 == 0) { // Decoding would slow the others down.
                        long lead = layout.decode(taken[i]).timestampMs() - System.currentTimeMillis();
                        ahead.accumulateAndGet(lead, Math::max);
                    }
                }
            };
            threads.add((row.isVirtual ? Thread.ofVirtual() : Thread.ofPlatform()).start(take));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long different = Arrays.stream(taken).distinct().count();
        return ",\"repeated\":%d,\"ids\":%d,\"ahead_ms\":%d".formatted(CHECKED - different, CHECKED, ahead.get());
    }

    /** Reads the version from the name of the package's jar. */
    private static String version(Subject<?> subject) {
        if (subject.origin() == null) {
            return "";
        }
        String jar = subject.origin().getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceFirst(".*?-(\\d[^/]*)\\.jar$", "$1");
    }

    private Main() {}
}
