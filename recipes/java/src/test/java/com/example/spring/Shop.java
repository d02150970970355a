package com.example.spring;

import com.example.Database;
import com.example.hibernate.SnowflakeId;
import com.example.jackson.IdString;
import io.polyflake.Snowflake;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.util.concurrent.CountDownLatch;
import javax.sql.DataSource;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.hibernate.autoconfigure.HibernatePropertiesCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

/** A program like those that users write. */
@SpringBootApplication
class Shop {
    /** Signals that a slow request has begun, and that it may end. */
    static CountDownLatch began = new CountDownLatch(1);
    static CountDownLatch mayEnd = new CountDownLatch(1);

    @Entity
    @Table(name = "spring_orders")
    static class Order {
        @Id
        @SnowflakeId
        public Long id;

        public Long parent;
    }

    record Request(@IdString Long parent) {}

    record Answer(@IdString long id, @IdString Long parent) {}

    @RestController
    static class Orders {
        private final EntityManager entities;
        private final Snowflake ids;

        Orders(EntityManager entities, Snowflake ids) {
            this.entities = entities;
            this.ids = ids;
        }

        @PostMapping("/orders")
        @Transactional
        Answer add(@RequestBody Request request) {
            Order order = new Order();
            order.parent = request.parent;
            entities.persist(order);
            return new Answer(order.id, order.parent);
        }

        @PostMapping("/slow")
        Answer slow() throws InterruptedException {
            began.countDown();
            mayEnd.await();
            return new Answer(ids.nextId(), null);
        }
    }

    @Bean
    DataSource dataSource() {
        return Database.postgres();
    }

    @Bean
    HibernatePropertiesCustomizer ids(Snowflake ids) {
        return settings -> settings.put(SnowflakeId.IDS, ids);
    }
}
