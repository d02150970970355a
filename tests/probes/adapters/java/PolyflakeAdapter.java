import io.polyflake.PolyflakeException;
import io.polyflake.Snowflake;
import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** Adapts Polyflake for Java to the duplicate probes. */
final class PolyflakeAdapter {
    private static final int DONE = 0;
    private static final int REFUSED = 3;
    private static final int UNSUPPORTED = 4;
    private static final String NO_FORK = "a Java program cannot fork";

    private final String situation;
    private final Map<String, Integer> numbers =
            new HashMap<>(Map.of("n", 1, "parts", 1, "behind_ms", 0, "tick_ms", 1, "gate", -1));
    /** The options for the generator. */
    private final Map<String, String> options = new HashMap<>();

    private PolyflakeAdapter(String[] arguments) {
        situation = arguments.length > 0 ? arguments[0] : "";
        for (int i = 1; i < arguments.length; i++) {
            String[] parts = arguments[i].split("=", 2);
            if (numbers.containsKey(parts[0])) {
                numbers.put(parts[0], Integer.valueOf(parts[1]));
            } else {
                options.put(parts[0], parts[1]);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.exit(new PolyflakeAdapter(arguments).run());
    }

    private Snowflake build() {
        String layout = switch (numbers.get("tick_ms")) {
            case 10 -> "sonyflake";
            case 1000 -> "cosid-second";
            default -> "twitter";
        };
        Snowflake.Builder builder = Snowflake.builder()
                .layout(situation.equals("exhaustion") ? "yitter" : layout) // 64 IDs per tick, so any language runs out
                .maxWait(Duration.ofMinutes(1)); // on a busy machine, a thread may wait a long time for its turn
        if (!options.containsKey("lease")) {
            builder.node(7);
        }
        options.forEach(builder::set);
        return builder.build();
    }

    /** The IDs that one thread took, and the error that stopped it, if any. */
    private static final class Part {
        private final List<Long> ids = new ArrayList<>();
        private PolyflakeException error;

        void take(Snowflake from, int n) {
            try {
                for (int i = 0; i < n; i++) {
                    ids.add(from.nextId());
                }
            } catch (PolyflakeException exception) {
                error = exception;
            }
        }

        void takeFromNew(PolyflakeAdapter adapter, int n) {
            Snowflake from;
            try {
                from = adapter.build();
            } catch (PolyflakeException exception) {
                error = exception;
                return;
            }
            take(from, n);
        }

        int finish() {
            StringBuilder text = new StringBuilder();
            ids.forEach(id -> text.append(id).append('\n'));
            byte[] bytes = text.toString().getBytes(StandardCharsets.US_ASCII);
            System.out.write(bytes, 0, bytes.length);
            System.out.flush();
            if (error == null) {
                return DONE;
            }
            System.err.println("refused: " + error.name());
            return REFUSED;
        }
    }

    /** Runs work in one thread per part, and prints the IDs they took. */
    private int threads(Consumer<Part> work) throws InterruptedException {
        List<Part> parts = new ArrayList<>();
        List<Thread> running = new ArrayList<>();
        for (int i = 0; i < numbers.get("parts"); i++) {
            Part part = new Part();
            parts.add(part);
            running.add(Thread.ofPlatform().start(() -> work.accept(part)));
        }
        for (Thread thread : running) {
            thread.join();
        }
        return parts.stream().mapToInt(Part::finish).max().orElse(DONE);
    }

    /** libfaketime steps this program's clock through a file. */
    private int rollback(Snowflake ids) throws IOException, InterruptedException {
        String clock = System.getenv("FAKETIME_TIMESTAMP_FILE");
        if (clock == null) {
            return unsupported("needs libfaketime, which steps this program's clock");
        }
        int behindMs = numbers.get("behind_ms");
        long began = System.nanoTime();
        Part part = new Part();
        part.take(ids, numbers.get("n") - 1);
        // Wait, so that the step goes back to the time of the first IDs.
        long left = behindMs - (System.nanoTime() - began) / 1_000_000;
        if (left > 0) {
            Thread.sleep(left);
        }
        part.take(ids, 1);
        // Do not truncate it: libfaketime ends the program if a thread reads the empty file.
        Files.writeString(Path.of(clock), "-" + behindMs / 1000.0 + "\n", StandardOpenOption.WRITE);
        part.take(ids, numbers.get("n"));
        return part.finish();
    }

    /** Starts when the previous process is done, as a restarted program would. */
    private int restart() throws Throwable {
        System.out.println("ready");
        System.in.readAllBytes();
        Part part = new Part();
        part.takeFromNew(this, numbers.get("n"));
        // This starts the next process. Java itself cannot close a file descriptor.
        Linker linker = Linker.nativeLinker();
        int closed = (int) linker.downcallHandle(linker.defaultLookup().find("close").orElseThrow(),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT)).invokeExact((int) numbers.get("gate"));
        if (closed != 0) {
            throw new IOException("the gate cannot be closed");
        }
        return part.finish();
    }

    /** Builds a generator for each ID, as a function that handles a single request would. */
    private int perCall() {
        Part part = new Part();
        while (part.ids.size() < numbers.get("n") && part.error == null) {
            part.takeFromNew(this, 1);
        }
        return part.finish();
    }

    /** One of several processes that were not given a node. The runner kills it. */
    private int fleet() throws IOException {
        if (List.of("lease", "node", "state").stream().noneMatch(options::containsKey)) {
            return unsupported("processes that have no node of their own need a lease");
        }
        Part part = new Part();
        part.takeFromNew(this, numbers.get("n"));
        int status = part.finish();
        if (status == DONE) {
            System.in.readAllBytes();
        }
        return status;
    }

    private interface Use {
        int use(Snowflake ids) throws Exception;
    }

    private int shared(Use use) throws Exception {
        Part failed = new Part();
        try {
            return use.use(build());
        } catch (PolyflakeException exception) {
            failed.error = exception;
            return failed.finish();
        }
    }

    private int run() throws Exception {
        int n = numbers.get("n");
        return switch (situation) {
            case "threads" -> shared(ids -> threads(part -> part.take(ids, n)));
            case "worker-threads" -> threads(part -> part.takeFromNew(this, n));
            case "rollback" -> shared(this::rollback);
            case "exhaustion" -> {
                Part part = new Part();
                part.takeFromNew(this, n);
                yield part.finish();
            }
            case "restart" -> {
                try {
                    yield restart();
                } catch (Exception | Error failure) {
                    throw failure;
                } catch (Throwable impossible) {
                    throw new AssertionError(impossible);
                }
            }
            case "per-call" -> perCall();
            case "fleet" -> fleet();
            case "fork", "fork-new" -> unsupported(NO_FORK);
            case "prefork", "prefork-one-node" -> unsupported("a Java server is one process: " + NO_FORK);
            default -> unsupported("unknown situation: " + situation);
        };
    }

    private static int unsupported(String why) {
        System.err.println(why);
        return UNSUPPORTED;
    }
}
