import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import me.ahoo.cosid.segment.DefaultSegmentId;
import me.ahoo.cosid.segment.IdSegmentDistributor;
import me.ahoo.cosid.segment.SegmentChainId;
import me.ahoo.cosid.spring.redis.SpringRedisIdSegmentDistributor;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;

/**
 * One of CosId's generators, which takes its turns as the benchmark of counters says.
 *
 * <pre>java Bench chain|segment|atomic STEP REDIS_PORT</pre>
 *
 * It prints its version. Each line that it reads is a command and a number of IDs, and each is answered by a line:
 * {@code one N}, {@code two N} and {@code batch N} by how many ns they took; {@code check-one N} and {@code check-two N}
 * by how many were repeated. There is one generator in a JVM, so that the loops call it directly once they are compiled.
 */
public final class Bench {
    private static final int BATCH = 1024;

    /** Where the results go, so that no loop is left out. */
    private static volatile long used;

    private static LongSupplier generator(String kind, long step, int port) {
        if (kind.equals("atomic")) {
            return new AtomicLong()::incrementAndGet;
        }
        var connections = new JedisConnectionFactory(new RedisStandaloneConfiguration("127.0.0.1", port));
        connections.afterPropertiesSet();
        connections.start();
        var redis = new StringRedisTemplate(connections);
        IdSegmentDistributor distributor =
                new SpringRedisIdSegmentDistributor("bench", kind + step, 0, step, redis);
        return kind.equals("chain")
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

    /** From the first start to the last end. */
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

    private static long repeated(LongSupplier ids, int count, int threads) throws Exception {
        var numbers = new long[count];
        var other = new Thread(() -> take(ids, numbers, count / 2, count));
        if (threads == 2) {
            other.start();
        }
        take(ids, numbers, 0, threads == 2 ? count / 2 : count);
        other.join();
        Arrays.sort(numbers);
        long repeated = 0;
        for (int n = 1; n < count; n++) {
            repeated += numbers[n] == numbers[n - 1] ? 1 : 0;
        }
        return repeated;
    }

    private static String version() {
        var source = SegmentChainId.class.getProtectionDomain().getCodeSource();
        String name = new File(source.getLocation().getPath()).getName();
        return name.replaceAll("[^0-9]*([0-9.]*[0-9]).*", "$1");
    }

    public static void main(String[] arguments) throws Exception {
        var ids = generator(arguments[0], Long.parseLong(arguments[1]), Integer.parseInt(arguments[2]));
        System.out.println(arguments[0].equals("atomic") ? "" : version());
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            int count = Integer.parseInt(words[1]);
            System.out.println(switch (words[0]) {
                case "one" -> one(ids, count);
                case "two" -> two(ids, count);
                case "batch" -> batches(ids, count);
                case "check-one" -> repeated(ids, count, 1);
                case "check-two" -> repeated(ids, count, 2);
                default -> throw new IllegalArgumentException(line);
            });
        }
        // Threads of CosId and of its client would go on.
        System.exit(0);
    }
}
