package com.example.hibernate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.example.Database;
import com.example.FailingGenerator;
import com.example.Generators;
import io.polyflake.IdGenerator;
import jakarta.persistence.CascadeType;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.Table;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class SnowflakeIdTest {
    private static final String ORDERS = "from SnowflakeIdTest$Order order by id";

    @Entity
    @Table(name = "hibernate_orders")
    static class Order {
        @Id
        @SnowflakeId
        Long id;

        @OneToMany(mappedBy = "order", cascade = CascadeType.ALL)
        List<Item> items = new ArrayList<>();

        Order add(Item item) {
            item.order = this;
            items.add(item);
            return this;
        }
    }

    @Entity
    @Table(name = "hibernate_items")
    static class Item {
        @Id
        @SnowflakeId
        long id;

        @ManyToOne
        Order order;
    }

    private static SessionFactory open(Object ids) {
        Configuration configuration = new Configuration();
        configuration.addAnnotatedClass(Order.class).addAnnotatedClass(Item.class);
        configuration.getProperties().put("hibernate.connection.datasource", Database.postgres());
        configuration.getProperties().put("hibernate.hbm2ddl.auto", "create-drop");
        configuration.getProperties().put("hibernate.jdbc.batch_size", 20);
        configuration.getProperties().put("hibernate.generate_statistics", true);
        if (ids != null) {
            configuration.getProperties().put(SnowflakeId.IDS, ids);
        }
        return configuration.buildSessionFactory();
    }

    private static List<Long> idsOf(List<Order> orders) {
        return orders.stream().map(order -> order.id).toList();
    }

    @ParameterizedTest
    @EnumSource
    void newRowsTakeTheNextIds(Generators generators) throws Exception {
        generators.run(ids -> {
            try (SessionFactory factory = open(ids)) {
                long before = ids.nextId();
                List<Order> orders = Stream.generate(Order::new).limit(100).toList();
                orders.getFirst().add(new Item()).add(new Item());
                factory.inTransaction(session -> orders.forEach(session::persist));
                long after = ids.nextId();
                // 100 orders and 2 items were inserted in batches.
                assertTrue(factory.getStatistics().getPrepareStatementCount() <= 6);

                factory.inTransaction(session -> {
                    List<Order> found = session.createQuery(ORDERS, Order.class).list();
                    assertEquals(idsOf(orders), idsOf(found));
                    List<Item> items = found.getFirst().items;
                    assertEquals(2, items.size());
                    Stream.concat(idsOf(found).stream(), items.stream().map(item -> item.id))
                            .forEach(id -> assertTrue(before < id && id < after, before + " " + id + " " + after));
                });
            }
        });
    }

    @Test
    void aRowWithoutAnIdIsNotWritten() {
        IdGenerator failing = new FailingGenerator();
        for (Object ids : new Object[] {failing, null, "not a generator"}) {
            try (SessionFactory factory = open(ids)) {
                Exception error = assertThrows(IllegalStateException.class,
                        () -> factory.inTransaction(session -> session.persist(new Order())));
                String expected = ids == failing ? "no ID" : "the setting polyflake.ids must be an IdGenerator";
                assertEquals(expected, error.getMessage());
                List<Order> found = factory.fromSession(session -> session.createQuery(ORDERS, Order.class).list());
                assertTrue(found.isEmpty());
            }
        }
    }
}
