package com.example;

import java.net.URI;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Objects;
import org.postgresql.ds.PGSimpleDataSource;

/** The PostgreSQL server that ../test.sh started. */
public final class Database {
    private Database() {}

    public static PGSimpleDataSource postgres() {
        return postgres(Objects.requireNonNull(System.getenv("RECIPES_POSTGRES"), "run recipes/test.sh java"));
    }

    public static PGSimpleDataSource postgres(String address) {
        URI uri = URI.create(address);
        String[] user = uri.getUserInfo().split(":");
        PGSimpleDataSource source = new PGSimpleDataSource();
        source.setUrl("jdbc:postgresql://" + uri.getHost() + ":" + uri.getPort() + uri.getPath());
        source.setUser(user[0]);
        source.setPassword(user[1]);
        source.setReWriteBatchedInserts(false);
        return source;
    }

    public static void run(PGSimpleDataSource source, String... statements) throws SQLException {
        try (Connection connection = source.getConnection(); Statement statement = connection.createStatement()) {
            for (String sql : statements) {
                statement.execute(sql);
            }
        }
    }
}
