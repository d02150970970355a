package com.example.migrating;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cn.hutool.core.lang.Snowflake;
import com.baomidou.mybatisplus.core.incrementer.DefaultIdentifierGenerator;
import com.baomidou.mybatisplus.core.toolkit.Sequence;
import io.polyflake.Decoded;
import io.polyflake.Layout;
import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import java.util.Map;
import java.util.Properties;
import java.util.TimeZone;
import java.util.function.LongSupplier;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeId;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeIdStateParser;
import me.ahoo.cosid.snowflake.SecondSnowflakeId;
import org.apache.shardingsphere.infra.algorithm.keygen.snowflake.SnowflakeKeyGenerateAlgorithm;
import org.junit.jupiter.api.Test;

/**
 * Decodes IDs from other packages with Polyflake's layouts, and checks that the time and the node are correct.
 */
class DecodedTest {
    private static void check(String layout, Map<String, Long> node, LongSupplier ids) {
        Layout decoding = Layout.of(layout);
        Decoded last = null;
        for (int i = 0; i < 1000; i++) {
            long id = ids.getAsLong();
            Decoded decoded = decoding.decode(id);
            // The time need not match to the ms, because MyBatis-Plus reads a clock that a separate thread updates.
            Duration off = Duration.between(decoded.time(), Instant.now());
            assertTrue(off.abs().compareTo(Duration.ofMinutes(1)) < 0, decoded + " is off by " + off);
            assertEquals(node, decoded.fields());
            assertEquals(id, decoding.compose(decoded.time(), decoded.fields(), decoded.sequence()));
            if (last != null && last.ticks() == decoded.ticks()) {
                assertEquals(last.sequence() + 1, decoded.sequence());
            }
            last = decoded;
        }
    }

    @Test
    void mybatisPlus() {
        // The constructor takes the worker first.
        Sequence sequence = new Sequence(9, 3);
        check("twitter", Map.of("datacenter", 3L, "worker", 9L), sequence::nextId);
        check("leaf", Map.of("worker", 3L << 5 | 9), new Sequence(9, 3)::nextId);
        DefaultIdentifierGenerator ids = new DefaultIdentifierGenerator(31, 30);
        check("twitter", Map.of("datacenter", 30L, "worker", 31L), () -> ids.nextId(null));
        long id = sequence.nextId();
        assertEquals(Sequence.parseIdTimestamp(id), Layout.of("twitter").decode(id).timestampMs());
    }

    @Test
    void hutool() {
        Snowflake ids = new Snowflake(9, 3);
        check("twitter", Map.of("datacenter", 3L, "worker", 9L), ids::nextId);
        long id = ids.nextId();
        Decoded decoded = Layout.of("twitter").decode(id);
        assertEquals(ids.getWorkerId(id), decoded.field("worker"));
        assertEquals(ids.getDataCenterId(id), decoded.field("datacenter"));
        assertEquals(ids.getGenerateDateTime(id), decoded.timestampMs());

        Instant epoch = Instant.parse("2020-01-01T00:00:00Z");
        check("timestamp:41|datacenter:5|worker:5|sequence:12@1577836800000/1ms",
                Map.of("datacenter", 3L, "worker", 9L), new Snowflake(Date.from(epoch), 9, 3, false)::nextId);
    }

    @Test
    void cosid() {
        MillisecondSnowflakeId ids = new MillisecondSnowflakeId(1000);
        check("cosid", Map.of("machine", 1000L), ids::generate);
        long id = ids.generate();
        var parsed = MillisecondSnowflakeIdStateParser.of(ids).parse(id);
        Decoded decoded = Layout.of("cosid").decode(id);
        assertEquals(parsed.getMachineId(), decoded.field("machine"));
        assertEquals(parsed.getSequence(), decoded.sequence());
        assertEquals(parsed.getTimestamp().atZone(TimeZone.getDefault().toZoneId()).toInstant(), decoded.time());

        check("cosid-second", Map.of("machine", 1000L), new SecondSnowflakeId(1000)::generate);
    }

    @Test
    void shardingSphere() {
        // The generator was given no worker.
        SnowflakeKeyGenerateAlgorithm ids = new SnowflakeKeyGenerateAlgorithm();
        ids.init(new Properties());
        check("shardingsphere", Map.of("worker", 0L), () -> (long) ids.generateKeys(null, 1).iterator().next());
    }
}
