package com.example.jooq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.example.Database;
import com.example.FailingGenerator;
import com.example.Generators;
import io.polyflake.IdGenerator;
import java.util.List;
import java.util.stream.Stream;
import org.jooq.DSLContext;
import org.jooq.SQLDialect;
import org.jooq.TableField;
import org.jooq.UniqueKey;
import org.jooq.impl.DSL;
import org.jooq.impl.DefaultConfiguration;
import org.jooq.impl.Internal;
import org.jooq.impl.SQLDataType;
import org.jooq.impl.TableImpl;
import org.jooq.impl.UpdatableRecordImpl;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class SnowflakeIdsTest {
    /** A table class like those that jOOQ's code generator writes. */
    static final class Orders extends TableImpl<OrderRecord> {
        private static final long serialVersionUID = 1;
        static final Orders ORDERS = new Orders();
        final TableField<OrderRecord, Long> id = createField(DSL.name("id"), SQLDataType.BIGINT.nullable(false), this);
        final TableField<OrderRecord, String> name = createField(DSL.name("name"), SQLDataType.CLOB, this);

        private Orders() {
            super(DSL.name("jooq_orders"));
        }

        @Override
        public Class<OrderRecord> getRecordType() {
            return OrderRecord.class;
        }

        @Override
        @SuppressWarnings({"rawtypes", "unchecked"})
        public UniqueKey<OrderRecord> getPrimaryKey() {
            return Internal.createUniqueKey(this, DSL.name("jooq_orders_pkey"), new TableField[] {id}, true);
        }
    }

    static final class OrderRecord extends UpdatableRecordImpl<OrderRecord> {
        private static final long serialVersionUID = 1;

        public OrderRecord() {
            super(Orders.ORDERS);
        }

        long id() {
            return get(Orders.ORDERS.id);
        }
    }

    private static DSLContext open(IdGenerator ids) {
        return DSL.using(new DefaultConfiguration()
                .set(Database.postgres())
                .set(SQLDialect.POSTGRES)
                .set(new SnowflakeIds(ids)));
    }

    private static OrderRecord record(DSLContext dsl) {
        return dsl.newRecord(Orders.ORDERS).with(Orders.ORDERS.name, "an order");
    }

    @BeforeEach
    void tables() throws Exception {
        Database.run(Database.postgres(), "DROP TABLE IF EXISTS jooq_orders",
                "CREATE TABLE jooq_orders (id BIGINT PRIMARY KEY, name TEXT)");
    }

    @ParameterizedTest
    @EnumSource
    void newRecordsTakeTheNextIds(Generators generators) throws Exception {
        generators.run(ids -> {
            DSLContext dsl = open(ids);
            long before = ids.nextId();
            OrderRecord stored = record(dsl);
            stored.store();
            OrderRecord inserted = record(dsl);
            inserted.insert();
            List<OrderRecord> many = Stream.generate(() -> record(dsl)).limit(100).toList();
            dsl.batchInsert(many).execute();
            List<OrderRecord> more = Stream.generate(() -> record(dsl)).limit(100).toList();
            dsl.batchStore(more).execute();
            long after = ids.nextId();

            List<Long> all = Stream.concat(Stream.of(stored, inserted), Stream.concat(many.stream(), more.stream()))
                    .map(OrderRecord::id).toList();
            assertEquals(all, dsl.fetchValues(Orders.ORDERS.id).stream().sorted().toList());
            assertTrue(before < all.getFirst() && all.getLast() < after, before + " " + all + " " + after);
            OrderRecord found = dsl.fetchOne(Orders.ORDERS, Orders.ORDERS.id.eq(stored.id()));
            assertEquals("an order", found.get(Orders.ORDERS.name));
        });
    }

    @Test
    void otherRecordsKeepTheirs() {
        DSLContext dsl = open(new FailingGenerator());
        OrderRecord given = record(dsl).with(Orders.ORDERS.id, 1L);
        given.store();
        given.set(Orders.ORDERS.name, "changed");
        given.store();
        assertEquals(1, given.id());
        assertThrows(IllegalStateException.class, () -> record(dsl).store());
        assertEquals(List.of("changed"), dsl.fetchValues(Orders.ORDERS.name));
    }

    @Test
    void aStatementSetsTheIdItself() throws Exception {
        Generators.NODE.run(ids -> {
            long id = ids.nextId();
            DSLContext dsl = open(new FailingGenerator());
            dsl.insertInto(Orders.ORDERS).set(Orders.ORDERS.id, id).execute();
            assertEquals(List.of(id), dsl.fetchValues(Orders.ORDERS.id));
        });
    }
}
