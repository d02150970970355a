package com.example.shardingsphere;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.example.Database;
import com.example.StoreServer;
import io.polyflake.Decoded;
import io.polyflake.Layout;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import javax.sql.DataSource;
import org.apache.shardingsphere.driver.api.yaml.YamlShardingSphereDataSourceFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.postgresql.ds.PGSimpleDataSource;

class PolyflakeKeysTest {
    private static final String RULES = """
            rules:
            - !SHARDING
              tables:
                sharded_orders:
                  actualDataNodes: db_${0..1}.sharded_orders
                  keyGenerateStrategy:
                    column: id
                    keyGeneratorName: snowflakes
              defaultDatabaseStrategy:
                standard:
                  shardingColumn: id
                  shardingAlgorithmName: halves
              shardingAlgorithms:
                halves:
                  type: INLINE
                  props:
                    algorithm-expression: db_${id % 2}
              keyGenerators:
                snowflakes:
                  type: POLYFLAKE
                  props:
                    lease: sqlite://%s/store.db?nodes=5-5
                    layout: shardingsphere
            """;

    @TempDir
    private static Path folder;

    private static List<Long> idsIn(DataSource source) throws SQLException {
        try (Connection connection = source.getConnection();
                Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT id FROM sharded_orders ORDER BY id")) {
            List<Long> ids = new ArrayList<>();
            while (rows.next()) {
                ids.add(rows.getLong(1));
            }
            return ids;
        }
    }

    @Test
    void rowsReachBothDatabasesWithKeysOfTheLeasedNode() throws Exception {
        try (StoreServer second = new StoreServer("postgres")) {
            List<PGSimpleDataSource> databases = List.of(Database.postgres(), Database.postgres(second.url));
            for (PGSimpleDataSource database : databases) {
                Database.run(database, "DROP TABLE IF EXISTS sharded_orders",
                        "CREATE TABLE sharded_orders (id BIGINT PRIMARY KEY, name TEXT)");
            }
            byte[] rules = RULES.replace("%s", folder.toString()).getBytes();
            DataSource shop = YamlShardingSphereDataSourceFactory.createDataSource(
                    Map.of("db_0", databases.get(0), "db_1", databases.get(1)), rules);
            List<Long> given = new ArrayList<>();
            try (AutoCloseable close = (AutoCloseable) shop; Connection connection = shop.getConnection()) {
                try (PreparedStatement insert = connection.prepareStatement(
                        "INSERT INTO sharded_orders (name) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
                    // Insert slowly, so that each key begins a new tick: if the sequence began at 0 each time, only one
                    // database would receive rows.
                    for (int i = 0; i < 100; i++) {
                        insert.setString(1, "an order");
                        assertEquals(1, insert.executeUpdate());
                        try (ResultSet keys = insert.getGeneratedKeys()) {
                            while (keys.next()) {
                                given.add(keys.getLong(1));
                            }
                        }
                        Thread.sleep(2);
                    }
                }
                try (Statement insert = connection.createStatement()) {
                    String three = "INSERT INTO sharded_orders (name) VALUES ('a'), ('b'), ('c')";
                    assertEquals(3, insert.executeUpdate(three));
                }
                assertEquals(100, Set.copyOf(given).size());
                assertEquals(103, idsIn(shop).size());
            }
            Set<Long> stored = new HashSet<>();
            for (int i = 0; i < 2; i++) {
                int shard = i;
                List<Long> ids = idsIn(databases.get(i));
                assertTrue(ids.size() >= 20, "database " + i + " has " + ids);
                assertTrue(ids.stream().allMatch(id -> id % 2 == shard), ids.toString());
                stored.addAll(ids);
            }
            assertEquals(103, stored.size());
            assertTrue(stored.containsAll(given));
            Layout layout = Layout.of("shardingsphere");
            assertTrue(stored.stream().map(layout::decode).map(Decoded::node).allMatch(node -> node == 5));
        }
    }

    /** A program with two instances of the algorithm. */
    static final class Shop {
        private Shop() {}

        public static void main(String[] arguments) {
            Properties options = new Properties();
            options.setProperty("lease", arguments[0]);
            PolyflakeKeys one = new PolyflakeKeys();
            one.init(options);
            PolyflakeKeys other = new PolyflakeKeys();
            other.init((Properties) options.clone());
            System.out.println(one.generateKeys(null, 2).size() + other.generateKeys(null, 1).size());
        }
    }

    @Test
    void aProcessThatEndsGivesItsNodeBack() throws Exception {
        String lease = "sqlite://" + folder + "/end.db?nodes=6-6&wait=0s";
        for (int i = 0; i < 2; i++) {
            Process shop = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin/java").toString(),
                    "--enable-native-access=ALL-UNNAMED", "-cp", System.getProperty("java.class.path"),
                    Shop.class.getName(), lease).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            assertEquals("3", shop.inputReader().readLine());
            assertEquals(0, shop.waitFor());
        }
    }
}
