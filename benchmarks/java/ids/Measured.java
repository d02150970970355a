package polyflake.benchmarks;

import java.util.concurrent.TimeUnit;
import java.util.function.LongFunction;
import java.util.function.LongSupplier;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.Blackhole;

/** The benchmarks. Each subject has its own JVM, so that the compiler sees a single generator or decoder. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@OperationsPerInvocation(Measured.BURST)
public class Measured {
    /** Small enough that two threads do not exhaust a 12-bit sequence. */
    static final int BURST = 1000;

    @State(Scope.Benchmark)
    public static class Generator {
        @Param("")
        public String subject;

        LongSupplier ids;

        @Setup
        public void create() throws Exception {
            ids = Subjects.generator(subject).create().call();
        }
    }

    /** Begins each burst at the start of a millisecond. */
    @State(Scope.Thread)
    public static class Tick {
        @Setup(Level.Invocation)
        public void await() {
            for (long now = System.currentTimeMillis(); now == System.currentTimeMillis(); ) {
                Thread.onSpinWait();
            }
        }
    }

    @State(Scope.Benchmark)
    public static class Decoder {
        @Param("")
        public String subject;

        final long[] ids = new long[BURST];
        LongFunction<Object> decode;

        @Setup
        public void create() throws Exception {
            decode = Subjects.decoder(subject).create().call();
            for (int i = 0; i < ids.length; i++) {
                ids[i] = 1541815603606036480L + (i * 86_400_007L << 12);
            }
        }
    }

    @Benchmark
    public void ids(Generator generator, Tick tick, Blackhole used) {
        for (int i = 0; i < BURST; i++) {
            used.consume(generator.ids.getAsLong());
        }
    }

    @Benchmark
    public void decoded(Decoder decoder, Blackhole used) {
        for (long id : decoder.ids) {
            used.consume(decoder.decode.apply(id));
        }
    }
}
