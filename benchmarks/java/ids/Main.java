package polyflake.benchmarks;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.StringJoiner;
import java.util.function.LongSupplier;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;
import polyflake.benchmarks.Subjects.Subject;

/**
 * The cost of an ID in Java, with other packages and floors. ../harness.py tells this program what to measure. JMH
 * starts a JVM for each subject, and measures several rounds in it.
 */
public final class Main {
    private static final int ROUNDS_PER_JVM = 5;
    private static final int BLOCK = 64;

    private record Row(String table, String method, Subject<?> subject, int threads, boolean isVirtual) {
        String round() throws RunnerException {
            var options = new OptionsBuilder()
                    .include("Measured\\." + method + "$")
                    .param("subject", subject.name())
                    .threads(threads)
                    .forks(1)
                    .warmupIterations(3)
                    .warmupTime(TimeValue.milliseconds(200))
                    .measurementIterations(ROUNDS_PER_JVM)
                    .measurementTime(TimeValue.milliseconds(100))
                    .jvmArgsAppend("-Djmh.executor=" + (isVirtual ? "VIRTUAL" : "PLATFORM"))
                    // By default, JMH waits 30 s for the threads that some peers leave behind.
                    .jvmArgsAppend("-Djmh.shutdownTimeout=1", "-Djmh.shutdownTimeout.step=1")
                    .shouldFailOnError(true)
                    .verbosity(VerboseMode.SILENT)
                    .build();
            var figures = new StringJoiner(" ");
            for (var iteration : new Runner(options).runSingle().getAggregatedResult().getIterationResults()) {
                // The score is the mean time of a call, and the threads make their calls at the same time.
                figures.add(String.valueOf(iteration.getPrimaryResult().getScore() / threads));
            }
            return figures.toString();
        }

        /** Takes IDs as fast as possible, and writes them with a clock reading after each block. */
        void write(int count, Path file) throws Exception {
            LongSupplier ids = Subjects.generator(subject.name()).create().call();
            long[] words = new long[count / BLOCK * (BLOCK + 1)];
            int each = words.length / threads;
            List<Thread> all = new ArrayList<>();
            for (int first = 0; first < words.length; first += each) {
                int from = first;
                Runnable take = () -> {
                    for (int i = from; i < from + each; i++) {
                        boolean isClock = (i - from) % (BLOCK + 1) == BLOCK;
                        words[i] = isClock ? System.currentTimeMillis() * 1000 : ids.getAsLong();
                    }
                };
                all.add((isVirtual ? Thread.ofVirtual() : Thread.ofPlatform()).start(take));
            }
            for (Thread thread : all) {
                thread.join();
            }
            var bytes = ByteBuffer.allocate(8 * words.length).order(ByteOrder.nativeOrder());
            bytes.asLongBuffer().put(words);
            Files.write(file, bytes.array());
            OUT.println(BLOCK + " " + threads + "\n");
        }
    }

    /** Used only for the results: JMH prints its JVMs' warnings to System.out, which is silenced. */
    private static final PrintStream OUT = System.out;

    public static void main(String[] args) throws Exception {
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        // Otherwise, JMH starts another JVM before each measurement to find out.
        System.setProperty("jmh.blackhole.mode", "COMPILER");
        System.setProperty("jmh.ignoreLock", "true");
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (Row row : rows()) {
            if (args.length < 2) {
                OUT.println(String.join("\t", row.table, row.subject.name(), "version=" + version(row.subject)));
            } else if (row.table.equals(args[0]) && row.subject.name().equals(args[1])) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    String[] words = line.split(" ");
                    if (words[0].equals("round")) {
                        OUT.println(row.round());
                    } else if (row.subject.isChecked()) {
                        row.write(Integer.parseInt(words[1]), Path.of(words[2]));
                    } else {
                        OUT.println("0 1");
                    }
                }
            }
        }
        // Some peers leave threads behind.
        System.exit(0);
    }

    private static List<Row> rows() {
        List<Row> rows = new ArrayList<>();
        for (var subject : Subjects.GENERATORS) {
            rows.add(new Row("one ID", "ids", subject, 1, false));
            if (!subject.isFloor()) {
                rows.add(new Row("two threads, one generator", "ids", subject, 2, false));
                rows.add(new Row("two virtual threads, one generator", "ids", subject, 2, true));
            }
        }
        for (var subject : Subjects.DECODERS) {
            rows.add(new Row("decode", "decoded", subject, 1, false));
        }
        return rows;
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
