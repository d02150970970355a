package com.example.migrating;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cn.hutool.core.lang.Snowflake;
import com.baomidou.mybatisplus.core.incrementer.DefaultIdentifierGenerator;
import com.baomidou.mybatisplus.core.toolkit.Sequence;
import com.tencent.devops.leaf.snowflake.SnowflakeIDGenImpl;
import com.xfvape.uid.BitsAllocator;
import com.xfvape.uid.impl.DefaultUidGenerator;
import io.polyflake.Decoded;
import io.polyflake.Layout;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.util.Date;
import java.util.Map;
import java.util.Properties;
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
        // CosId gives a local time, which is ambiguous in the hour that repeats when clocks are set back.
        assertEquals(parsed.getTimestamp(), LocalDateTime.ofInstant(decoded.time(), ZoneId.systemDefault()));

        check("cosid-second", Map.of("machine", 1000L), new SecondSnowflakeId(1000)::generate);
    }

    @Test
    void shardingSphere() {
        // The generator was not given a worker.
        SnowflakeKeyGenerateAlgorithm ids = new SnowflakeKeyGenerateAlgorithm();
        ids.init(new Properties());
        check("shardingsphere", Map.of("worker", 0L), () -> (long) ids.generateKeys(null, 1).iterator().next());
    }

    @Test
    void leaf() {
        SnowflakeIDGenImpl ids = new SnowflakeIDGenImpl("", 0);
        check("leaf", Map.of("worker", 1023L), () -> ids.get("").getId());
        check("twitter", Map.of("datacenter", 31L, "worker", 31L), () -> ids.get("").getId());
        SnowflakeIDGenImpl since2020 = new SnowflakeIDGenImpl("", 0, 1577836800000L);
        check("timestamp:41|worker:10|sequence:12@1577836800000/1ms", Map.of("worker", 1023L),
                () -> since2020.get("").getId());
    }

    @Test
    void uidGenerator() throws Exception {
        DefaultUidGenerator ids = new DefaultUidGenerator();
        ids.setTimeBits(29);
        ids.setWorkerBits(21);
        ids.setSeqBits(13);
        ids.setEpochStr("2016-09-20");
        ids.setWorkerIdAssigner(() -> 7);
        ids.afterPropertiesSet();
        check("timestamp:29|worker:21|sequence:13@1474300800000/1s", Map.of("worker", 7L), ids::getUID);

        // The generator's default layout ended in 2024, but the class that composes its IDs still works.
        long id = new BitsAllocator(28, 22, 13).allocate((1L << 28) - 1, (1L << 22) - 2, 8190);
        Decoded decoded = Layout.of("baidu").decode(id);
        assertEquals((1L << 28) - 1, decoded.ticks());
        assertEquals((1L << 22) - 2, decoded.field("worker"));
        assertEquals(8190, decoded.sequence());
        assertEquals(Instant.parse("2024-11-20T13:24:15Z"), decoded.time());
    }
}
