package com.example.shardingsphere;

import io.polyflake.Snowflake;
import java.util.Collection;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.LongStream;
import org.apache.shardingsphere.infra.algorithm.core.context.AlgorithmSQLContext;
import org.apache.shardingsphere.infra.algorithm.keygen.core.KeyGenerateAlgorithm;

/**
 * ShardingSphere 5.5: keys are Snowflakes. Each process leases a worker, and keys reach all shards even if they are
 * generated slowly.
 *
 * <pre>{@code
 * keyGenerators:
 *   snowflakes:
 *     type: POLYFLAKE
 *     props: # Polyflake's options by name
 *       lease: redis://redis.internal/0
 *       layout: shardingsphere
 * }</pre>
 *
 * <p>Name this class in the file
 * {@code META-INF/services/org.apache.shardingsphere.infra.algorithm.keygen.core.KeyGenerateAlgorithm}.
 * The process gives its node back when it exits.
 */
public final class PolyflakeKeys implements KeyGenerateAlgorithm {
    /** ShardingSphere creates an instance of this class whenever it reads the configuration. */
    private static final Map<Properties, Snowflake> OPEN = new ConcurrentHashMap<>();

    private Snowflake ids;

    @Override
    public void init(Properties options) {
        ids = OPEN.computeIfAbsent(options, PolyflakeKeys::open);
    }

    private static Snowflake open(Properties options) {
        Snowflake.Builder builder = Snowflake.builder();
        options.forEach((name, value) -> builder.set(name.toString(), value.toString()));
        Snowflake ids = builder.build();
        Runtime.getRuntime().addShutdownHook(new Thread(ids::close));
        return ids;
    }

    @Override
    public Collection<Long> generateKeys(AlgorithmSQLContext context, int count) {
        return LongStream.of(ids.nextIds(count)).boxed().toList();
    }

    @Override
    public boolean isSupportAutoIncrement() {
        return true;
    }

    @Override
    public String getType() {
        return "POLYFLAKE";
    }
}
