package polyflake.benchmarks;

import cn.hutool.core.lang.Snowflake;
import com.baomidou.mybatisplus.core.toolkit.Sequence;
import com.github.f4b6a3.tsid.Tsid;
import com.github.f4b6a3.tsid.TsidFactory;
import com.github.yitter.contract.IdGeneratorOptions;
import com.github.yitter.idgen.DefaultIdGenerator;
import com.tencent.devops.leaf.snowflake.SnowflakeIDGenImpl;
import com.xfvape.uid.impl.CachedUidGenerator;
import com.xfvape.uid.impl.DefaultUidGenerator;
import io.polyflake.Layout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.function.LongFunction;
import java.util.function.LongSupplier;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeId;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeIdStateParser;
import org.apache.shardingsphere.infra.algorithm.keygen.snowflake.SnowflakeKeyGenerateAlgorithm;

/** The generators and decoders to measure. */
final class Subjects {
    /**
     * @param origin a class from the package, used to find its version
     * @param isChecked whether it creates IDs that must not repeat
     */
    record Subject<T>(String name, Class<?> origin, boolean isChecked, boolean isFloor, Callable<T> create) {
        Subject(String name, Class<?> origin, Callable<T> create) {
            this(name, origin, true, false, create);
        }

        static <T> Subject<T> decoder(String name, Class<?> origin, Callable<T> create) {
            return new Subject<>(name, origin, false, false, create);
        }

        static <T> Subject<T> floor(String name, Callable<T> create) {
            return new Subject<>(name, null, false, true, create);
        }
    }

    private record Parts(long time, long datacenter, long worker, long sequence) {}

    static final List<Subject<LongSupplier>> GENERATORS = List.of(
            polyflake("polyflake nextId", "twitter"),
            new Subject<>("CosId MillisecondSnowflakeId", MillisecondSnowflakeId.class, () -> {
                var ids = new MillisecondSnowflakeId(1);
                return ids::generate;
            }),
            new Subject<>("Hutool Snowflake", Snowflake.class, () -> {
                var ids = new Snowflake(1, 1);
                return ids::nextId;
            }),
            new Subject<>("yitter DefaultIdGenerator", DefaultIdGenerator.class, () -> {
                        var options = new IdGeneratorOptions((short) 1);
                        options.WorkerIdBitLength = 10;
                        options.SeqBitLength = 12;
                        var ids = new DefaultIdGenerator(options);
                        return ids::newLong;
                    }),
            new Subject<>("Leaf SnowflakeIDGenImpl", SnowflakeIDGenImpl.class, () -> {
                var ids = new SnowflakeIDGenImpl("", 0);
                return () -> ids.get("").getId();
            }),
            new Subject<>("UidGenerator DefaultUidGenerator", DefaultUidGenerator.class, () -> {
                        var ids = baidu(new DefaultUidGenerator(), 7, 25);
                        return ids::getUID;
                    }),
            new Subject<>("UidGenerator CachedUidGenerator", CachedUidGenerator.class, () -> {
                        var ids = baidu(new CachedUidGenerator(), 16, 16);
                        return ids::getUID;
                    }),
            new Subject<>("tsid-creator TsidFactory", TsidFactory.class, () -> {
                        var ids = TsidFactory.newInstance1024(1);
                        return () -> ids.create().toLong();
                    }),
            new Subject<>("ShardingSphere SnowflakeKeyGenerateAlgorithm", SnowflakeKeyGenerateAlgorithm.class, () -> {
                        var ids = new SnowflakeKeyGenerateAlgorithm();
                        ids.init(new Properties());
                        return () -> (long) ids.generateKeys(null, 1).iterator().next();
                    }),
            new Subject<>("MyBatis-Plus Sequence", Sequence.class, () -> {
                var ids = new Sequence(1, 1);
                return ids::nextId;
            }),
            Subject.decoder("UUID.randomUUID()", null, () -> () -> UUID.randomUUID().getLeastSignificantBits()),
            Subject.floor("critical downcall of a constant", Subjects::constantCall));

    static final List<Subject<LongFunction<Object>>> DECODERS = List.of(
            Subject.decoder("polyflake Layout.decode", Layout.class, () -> {
                var layout = Layout.of("twitter");
                return layout::decode;
            }),
            Subject.decoder("CosId MillisecondSnowflakeIdStateParser", MillisecondSnowflakeId.class, () -> {
                var parser = MillisecondSnowflakeIdStateParser.of(new MillisecondSnowflakeId(1));
                return parser::parse;
            }),
            Subject.decoder("UidGenerator parseUID", DefaultUidGenerator.class, () -> {
                var ids = baidu(new DefaultUidGenerator(), 7, 25);
                return ids::parseUID;
            }),
            Subject.decoder("Hutool Snowflake, three calls", Snowflake.class, () -> {
                var ids = new Snowflake(1, 1);
                return id -> new Parts(
                        ids.getGenerateDateTime(id), ids.getDataCenterId(id), ids.getWorkerId(id), 0);
            }),
            Subject.decoder("tsid-creator Tsid.getInstant", Tsid.class, () -> id -> Tsid.from(id).getInstant()),
            Subject.decoder("MyBatis-Plus Sequence.parseIdTimestamp", Sequence.class, () -> Sequence::parseIdTimestamp),
            Subject.floor("shifts and masks of a constant layout",
                    () -> id -> new Parts((id >>> 22) + 1288834974657L, id >>> 17 & 31, id >>> 12 & 31, id & 4095)));

    static Subject<LongSupplier> generator(String name) {
        return GENERATORS.stream().filter(one -> one.name.equals(name)).findFirst().orElseThrow();
    }

    static Subject<LongFunction<Object>> decoder(String name) {
        return DECODERS.stream().filter(one -> one.name.equals(name)).findFirst().orElseThrow();
    }

    private static Subject<LongSupplier> polyflake(String name, String layout) {
        return new Subject<>(name, Layout.class, () -> {
            var ids = io.polyflake.Snowflake.builder().layout(layout).node(1).build();
            return ids::nextId;
        });
    }

    private static DefaultUidGenerator baidu(DefaultUidGenerator ids, int workerBits, int sequenceBits)
            throws Exception {
        ids.setTimeBits(63 - workerBits - sequenceBits);
        ids.setWorkerBits(workerBits);
        ids.setSeqBits(sequenceBits);
        ids.setWorkerIdAssigner(() -> 1);
        ids.afterPropertiesSet();
        return ids;
    }

    /** A constant handle, so that the compiler can inline the call. */
    private static final class Constant {
        static final SymbolLookup LIBRARY = SymbolLookup.libraryLookup("libpolyflake.so", Arena.global());
        static final MethodHandle CALL = Linker.nativeLinker().downcallHandle(
                LIBRARY.findOrThrow("polyflake_abi_version"), FunctionDescriptor.of(ValueLayout.JAVA_INT),
                Linker.Option.critical(false));
    }

    private static LongSupplier constantCall() {
        return () -> {
            try {
                return (int) Constant.CALL.invokeExact();
            } catch (Throwable failed) {
                throw new AssertionError(failed);
            }
        };
    }

    private Subjects() {}
}
