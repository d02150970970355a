import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.function.LongSupplier;
import me.ahoo.cosid.segment.DefaultSegmentId;
import me.ahoo.cosid.segment.IdSegmentDistributor;
import me.ahoo.cosid.segment.SegmentChainId;
import me.ahoo.cosid.spring.redis.SpringRedisIdSegmentDistributor;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;

/**
 * CosId's generators, with segments from the Redis server named by the variable REDIS. ../harness.py tells this program
 * what to measure. Each JVM has a single generator, so that the loops call it directly once they are compiled.
 */
public final class Bench {
    private static final int BATCH = 1024;
    private static final String ONE = "one number, one thread";
    private static final String TWO = "one number, two threads";
    private static final String BATCHES = "batch of 1,024";
    private static final String ASKED = "each number from a store";
    /** How long the loops run before measuring, so that they are compiled. */
    private static final long WARM_UP_NS = 4_000_000_000L;

    /** A row has a table, a class and a step; {@code count} numbers make up a round. */
    private record Row(String table, String kind, long step, int count, int checked) {
        String subject() {
            return "CosId Segment" + kind + (step == STEP ? "" : ", step=" + step);
        }
    }

    private static final long STEP = 10_000_000;
    private static final int IN_HAND = 5 << 20;
    private static final List<Row> ROWS = List.of(
            new Row(ONE, "ChainId", STEP, IN_HAND, Integer.MAX_VALUE),
            new Row(ONE, "ChainId", 10, IN_HAND, Integer.MAX_VALUE),
            new Row(ONE, "Id", STEP, IN_HAND, Integer.MAX_VALUE),
            new Row(TWO, "ChainId", STEP, IN_HAND, Integer.MAX_VALUE),
            new Row(TWO, "Id", STEP, IN_HAND, Integer.MAX_VALUE),
            new Row(BATCHES, "ChainId", STEP, IN_HAND, Integer.MAX_VALUE),
            new Row(BATCHES, "Id", STEP, IN_HAND, Integer.MAX_VALUE),
            new Row(ASKED, "Id", 1, 500, 1_000));

    /** Receives the results, so that no loop is optimized away. */
    private static volatile long used;

    private static LongSupplier generator(String kind, long step) {
        int port = URI.create(System.getenv("REDIS")).getPort();
        var connections = new JedisConnectionFactory(new RedisStandaloneConfiguration("127.0.0.1", port));
        connections.afterPropertiesSet();
        connections.start();
        var redis = new StringRedisTemplate(connections);
        IdSegmentDistributor distributor =
                new SpringRedisIdSegmentDistributor("bench", kind + step, 0, step, redis);
        return kind.equals("ChainId")
                ? new SegmentChainId(distributor)::generate
                : new DefaultSegmentId(distributor)::generate;
    }

    private static long one(LongSupplier ids, int count) {
        long start = System.nanoTime(), sum = 0;
        for (int n = 0; n < count; n++) {
            sum += ids.getAsLong();
        }
        long spent = System.nanoTime() - start;
        used = sum;
        return spent;
    }

    /** The time from the first start to the last finish. */
    private static long two(LongSupplier ids, int count) throws Exception {
        var barrier = new CyclicBarrier(2);
        var spans = new long[4];
        Thread[] threads = new Thread[2];
        for (int thread = 0; thread < 2; thread++) {
            int at = 2 * thread;
            threads[thread] = new Thread(() -> {
                try {
                    barrier.await();
                } catch (Exception broken) {
                    throw new IllegalStateException(broken);
                }
                spans[at] = System.nanoTime();
                one(ids, count / 2);
                spans[at + 1] = System.nanoTime();
            });
            threads[thread].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return Math.max(spans[1], spans[3]) - Math.min(spans[0], spans[2]);
    }

    private static void take(LongSupplier ids, long[] numbers, int from, int to) {
        for (int n = from; n < to; n++) {
            numbers[n] = ids.getAsLong();
        }
    }

    private static long batches(LongSupplier ids, int count) {
        var numbers = new long[BATCH];
        long start = System.nanoTime();
        for (int n = 0; n < count; n += BATCH) {
            take(ids, numbers, 0, BATCH);
            used = numbers[BATCH - 1];
        }
        return System.nanoTime() - start;
    }

    private static long round(Row row, LongSupplier ids) throws Exception {
        return switch (row.table) {
            case TWO -> two(ids, row.count);
            case BATCHES -> batches(ids, row.count);
            default -> one(ids, row.count);
        };
    }

    /** Writes one block of numbers per thread, without clock readings, since the numbers contain no time. */
    private static int write(Row row, LongSupplier ids, int count, Path file) throws Exception {
        int threads = row.table.equals(TWO) ? 2 : 1;
        int each = Math.min(count, row.checked) / threads;
        var numbers = new long[threads * (each + 1)];
        var other = new Thread(() -> take(ids, numbers, each + 1, 2 * each + 1));
        if (threads == 2) {
            other.start();
        }
        take(ids, numbers, 0, each);
        other.join();
        var bytes = ByteBuffer.allocate(8 * numbers.length).order(ByteOrder.nativeOrder());
        bytes.asLongBuffer().put(numbers);
        Files.write(file, bytes.array());
        return each;
    }

    private static String version() {
        var source = SegmentChainId.class.getProtectionDomain().getCodeSource();
        String name = new File(source.getLocation().getPath()).getName();
        return name.replaceAll("[^0-9]*([0-9.]*[0-9]).*", "$1");
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 2) {
            for (Row row : ROWS) {
                System.out.println(String.join("\t", row.table, row.subject(), "version=" + version()));
            }
            return;
        }
        var row = ROWS.stream()
                .filter(one -> one.table.equals(arguments[0]) && one.subject().equals(arguments[1]))
                .findFirst()
                .orElseThrow();
        var ids = generator(row.kind, row.step);
        for (long start = System.nanoTime(); System.nanoTime() - start < WARM_UP_NS; ) {
            round(row, ids);
        }
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("ids")) {
                int block = write(row, ids, Integer.parseInt(words[1]), Path.of(words[2]));
                System.out.println(block + " 1\n");
            } else {
                System.out.println((double) round(row, ids) / row.count);
            }
        }
        // The threads of CosId and its client would keep the JVM running.
        System.exit(0);
    }
}
