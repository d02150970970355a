package com.example.jooq;

import io.polyflake.IdGenerator;
import org.jooq.Field;
import org.jooq.RecordContext;
import org.jooq.RecordListener;
import org.jooq.TableField;
import org.jooq.UniqueKey;
import org.jooq.UpdatableRecord;

/**
 * jOOQ: a new record takes the next ID if its primary key is a single {@code Long} that was not set.
 *
 * <pre>{@code
 * configuration.set(new SnowflakeIds(ids));
 *
 * OrderRecord order = dsl.newRecord(ORDERS);
 * order.store();
 * }</pre>
 *
 * <p>jOOQ calls this listener for records, as in {@code store}, {@code insert} and {@code batchInsert}. In a statement,
 * set the ID yourself:
 *
 * <pre>{@code
 * dsl.insertInto(ORDERS).set(ORDERS.ID, ids.nextId())
 * }</pre>
 */
public final class SnowflakeIds implements RecordListener {
    private final IdGenerator ids;

    public SnowflakeIds(IdGenerator ids) {
        this.ids = ids;
    }

    @Override
    public void insertStart(RecordContext context) {
        if (context.record() instanceof UpdatableRecord<?> row) {
            UniqueKey<?> key = row.getTable().getPrimaryKey();
            if (key != null && key.getFields().size() == 1) {
                fill(row, key.getFields().getFirst());
            }
        }
    }

    private void fill(UpdatableRecord<?> row, TableField<?, ?> key) {
        if (key.getType() == Long.class && row.get(key) == null) {
            @SuppressWarnings("unchecked")
            Field<Long> id = (Field<Long>) key;
            row.set(id, ids.nextId());
        }
    }
}
