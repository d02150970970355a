package com.example.springdata;

import io.polyflake.IdGenerator;
import org.springframework.data.mapping.PersistentPropertyAccessor;
import org.springframework.data.mapping.model.EntityInstantiators;
import org.springframework.data.mapping.model.InstantiationAwarePropertyAccessor;
import org.springframework.data.relational.core.mapping.RelationalMappingContext;
import org.springframework.data.relational.core.mapping.RelationalPersistentEntity;
import org.springframework.data.relational.core.mapping.RelationalPersistentProperty;
import org.springframework.data.relational.core.mapping.event.BeforeConvertCallback;

/**
 * Spring Data JDBC: a new row, whether a class or a record, takes the next ID if its {@code @Id} is a {@code Long} that
 * is null.
 *
 * <pre>{@code
 * record Order(@Id Long id, String name) {}
 *
 * @Bean
 * SnowflakeIds snowflakeIds(Snowflake ids, JdbcMappingContext mapping) {
 *     return new SnowflakeIds(ids, mapping);
 * }
 * }</pre>
 *
 * <p>Spring Data calls this for the root of an aggregate, but not for the other entities in the aggregate.
 */
public final class SnowflakeIds implements BeforeConvertCallback<Object> {
    private final IdGenerator ids;
    private final RelationalMappingContext mapping;
    private final EntityInstantiators instantiators = new EntityInstantiators();

    public SnowflakeIds(IdGenerator ids, RelationalMappingContext mapping) {
        this.ids = ids;
        this.mapping = mapping;
    }

    @Override
    public Object onBeforeConvert(Object row) {
        RelationalPersistentEntity<?> entity = mapping.getRequiredPersistentEntity(row.getClass());
        RelationalPersistentProperty key = entity.getIdProperty();
        if (key == null || key.getType() != Long.class) {
            return row;
        }
        // This accessor can also set the ID in a record, by creating a new record.
        PersistentPropertyAccessor<Object> properties =
                new InstantiationAwarePropertyAccessor<>(row, entity::getPropertyAccessor, instantiators);
        if (properties.getProperty(key) == null) {
            properties.setProperty(key, ids.nextId());
        }
        return properties.getBean();
    }
}
