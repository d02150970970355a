package com.example.hibernate;

import io.polyflake.IdGenerator;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.EnumSet;
import org.hibernate.annotations.IdGeneratorType;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.hibernate.generator.BeforeExecutionGenerator;
import org.hibernate.generator.EventType;
import org.hibernate.generator.EventTypeSets;

/**
 * Hibernate: new rows take the next ID. Unlike with {@code IDENTITY}, Hibernate can send inserts in batches.
 *
 * <pre>{@code
 * @Entity
 * class Order {
 *     @Id @SnowflakeId
 *     Long id;
 * }
 * }</pre>
 *
 * <p>Pass the generator to Hibernate in the setting {@link #IDS}. In Spring Boot:
 *
 * <pre>{@code
 * @Bean
 * HibernatePropertiesCustomizer ids(Snowflake ids) {
 *     return settings -> settings.put(SnowflakeId.IDS, ids);
 * }
 * }</pre>
 */
@IdGeneratorType(SnowflakeId.Generator.class)
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.FIELD, ElementType.METHOD})
public @interface SnowflakeId {
    /** The setting whose value is an {@link IdGenerator}. */
    String IDS = "polyflake.ids";

    final class Generator implements BeforeExecutionGenerator {
        private static final long serialVersionUID = 1;

        @Override
        public Object generate(SharedSessionContractImplementor session, Object row, Object value, EventType event) {
            if (session.getFactory().getProperties().get(IDS) instanceof IdGenerator ids) {
                return ids.nextId();
            }
            throw new IllegalStateException("the setting " + IDS + " must be an IdGenerator");
        }

        @Override
        public EnumSet<EventType> getEventTypes() {
            return EventTypeSets.INSERT_ONLY;
        }
    }
}
