package com.example.mybatis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.baomidou.mybatisplus.annotation.TableId;
import com.baomidou.mybatisplus.annotation.TableName;
import com.baomidou.mybatisplus.core.MybatisConfiguration;
import com.baomidou.mybatisplus.core.MybatisSqlSessionFactoryBuilder;
import com.baomidou.mybatisplus.core.mapper.BaseMapper;
import com.baomidou.mybatisplus.core.toolkit.GlobalConfigUtils;
import com.example.Database;
import com.example.FailingGenerator;
import com.example.Generators;
import io.polyflake.IdGenerator;
import java.util.ArrayList;
import java.util.List;
import org.apache.ibatis.exceptions.PersistenceException;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.session.SqlSession;
import org.apache.ibatis.session.SqlSessionFactory;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class SnowflakeIdsTest {
    @TableName("mybatis_orders")
    public static class Order {
        @TableId
        public Long id;
        public String name = "an order";
    }

    public interface Orders extends BaseMapper<Order> {}

    private static SqlSessionFactory open(IdGenerator ids) {
        MybatisConfiguration configuration =
                new MybatisConfiguration(new Environment("test", new JdbcTransactionFactory(), Database.postgres()));
        GlobalConfigUtils.getGlobalConfig(configuration).setIdentifierGenerator(new SnowflakeIds(ids)).setBanner(false);
        configuration.addMapper(Orders.class);
        return new MybatisSqlSessionFactoryBuilder().build(configuration);
    }

    @BeforeEach
    void tables() throws Exception {
        Database.run(Database.postgres(), "DROP TABLE IF EXISTS mybatis_orders",
                "CREATE TABLE mybatis_orders (id BIGINT PRIMARY KEY, name TEXT)");
    }

    @ParameterizedTest
    @EnumSource
    void newRowsTakeTheNextIds(Generators generators) throws Exception {
        generators.run(ids -> {
            try (SqlSession session = open(ids).openSession()) {
                Orders orders = session.getMapper(Orders.class);
                List<Long> inserted = new ArrayList<>();
                inserted.add(ids.nextId());
                for (int i = 0; i < 100; i++) {
                    Order order = new Order();
                    orders.insert(order);
                    inserted.add(order.id);
                }
                inserted.add(ids.nextId());
                session.commit();
                assertEquals(inserted.stream().sorted().distinct().toList(), inserted);
                List<Long> found = orders.selectList(null).stream().map(order -> order.id).sorted().toList();
                assertEquals(inserted.subList(1, 101), found);
                assertEquals("an order", orders.selectById(found.getFirst()).name);
            }
        });
    }

    @Test
    void otherRowsKeepTheirs() {
        try (SqlSession session = open(new FailingGenerator()).openSession()) {
            Orders orders = session.getMapper(Orders.class);
            Order given = new Order();
            given.id = 1L;
            orders.insert(given);
            assertEquals(1, orders.selectById(1L).id);
            PersistenceException error = assertThrows(PersistenceException.class, () -> orders.insert(new Order()));
            assertTrue(error.getMessage().contains("no ID"), error.getMessage());
        }
    }
}
