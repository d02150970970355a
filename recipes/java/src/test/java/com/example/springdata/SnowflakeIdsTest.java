package com.example.springdata;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.example.Database;
import com.example.FailingGenerator;
import com.example.Generators;
import io.polyflake.IdGenerator;
import java.util.List;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.annotation.Id;
import org.springframework.data.jdbc.core.JdbcAggregateTemplate;
import org.springframework.data.jdbc.core.mapping.JdbcMappingContext;
import org.springframework.data.jdbc.repository.config.AbstractJdbcConfiguration;
import org.springframework.data.relational.core.mapping.Table;
import org.springframework.jdbc.core.namedparam.NamedParameterJdbcOperations;
import org.springframework.jdbc.core.namedparam.NamedParameterJdbcTemplate;

class SnowflakeIdsTest {
    @Table("spring_data_rows")
    record Order(@Id Long id, String name) {}

    @Table("spring_data_rows")
    static class Item {
        @Id
        Long id;
        String name = "an item";
    }

    /** An entity whose keys are strings. */
    @Table("spring_data_texts")
    record Note(@Id String id, String name) {}

    @Configuration
    static class Program extends AbstractJdbcConfiguration {
        @Bean
        NamedParameterJdbcOperations operations(DataSource source) {
            return new NamedParameterJdbcTemplate(source);
        }

        @Bean
        DataSource source() {
            return Database.postgres();
        }

        @Bean
        SnowflakeIds snowflakeIds(IdGenerator ids, JdbcMappingContext mapping) {
            return new SnowflakeIds(ids, mapping);
        }
    }

    private static AnnotationConfigApplicationContext start(IdGenerator ids) {
        var program = new AnnotationConfigApplicationContext();
        program.registerBean(IdGenerator.class, () -> ids);
        program.register(Program.class);
        program.refresh();
        return program;
    }

    @BeforeEach
    void tables() throws Exception {
        Database.run(Database.postgres(), "DROP TABLE IF EXISTS spring_data_rows, spring_data_texts",
                "CREATE TABLE spring_data_rows (id BIGINT PRIMARY KEY, name TEXT)",
                "CREATE TABLE spring_data_texts (id TEXT PRIMARY KEY, name TEXT)");
    }

    @ParameterizedTest
    @EnumSource
    void newRowsTakeTheNextIds(Generators generators) throws Exception {
        generators.run(ids -> {
            try (var program = start(ids)) {
                JdbcAggregateTemplate template = program.getBean(JdbcAggregateTemplate.class);
                long before = ids.nextId();
                Order order = template.save(new Order(null, "an order"));
                assertEquals("an order", order.name);
                Item item = template.save(new Item());
                List<Order> many = template.saveAll(
                        Stream.generate(() -> new Order(null, "one of many")).limit(100).toList());
                long after = ids.nextId();

                assertEquals(order, template.findById(order.id, Order.class));
                assertEquals("an item", template.findById(item.id, Order.class).name);
                assertEquals(102, template.count(Order.class));
                long last = before;
                for (long id : Stream.concat(Stream.of(order.id, item.id), many.stream().map(Order::id)).toList()) {
                    assertTrue(last < id && id < after, last + " " + id + " " + after);
                    last = id;
                }
            }
        });
    }

    @Test
    void otherRowsKeepTheirs() {
        try (var program = start(new FailingGenerator())) {
            JdbcAggregateTemplate template = program.getBean(JdbcAggregateTemplate.class);
            template.insert(new Order(1L, "given"));
            assertEquals(new Order(1L, "changed"), template.save(new Order(1L, "changed")));
            assertEquals(List.of(new Order(1L, "changed")), template.findAll(Order.class));
            template.insert(new Note("a", "text"));
            assertEquals(List.of(new Note("a", "text")), template.findAll(Note.class));

            assertThrows(IllegalStateException.class, () -> template.save(new Order(null, "no ID")));
            assertEquals(1, template.count(Order.class));
        }
    }
}
