package com.example.mybatis;

import com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator;
import io.polyflake.IdGenerator;

/**
 * MyBatis-Plus: keys with {@code IdType.ASSIGN_ID}, which is the default, take the next ID. MyBatis-Plus's own
 * generator derives the worker from the host's MAC address and the process ID, so two processes may have the same
 * worker.
 *
 * <pre>{@code
 * class Order {
 *     @TableId
 *     Long id;
 * }
 *
 * @Bean
 * SnowflakeIds snowflakeIds(Snowflake ids) {
 *     return new SnowflakeIds(ids);
 * }
 * }</pre>
 *
 * <p>Without Spring, set this generator in the {@code GlobalConfig}.
 */
public final class SnowflakeIds implements IdentifierGenerator {
    private final IdGenerator ids;

    public SnowflakeIds(IdGenerator ids) {
        this.ids = ids;
    }

    @Override
    public Number nextId(Object row) {
        return ids.nextId();
    }
}
