package com.example;

import io.polyflake.Counter;
import io.polyflake.IdGenerator;
import io.polyflake.Snowflake;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The generators that each recipe must accept. */
public enum Generators {
    NODE {
        @Override
        IdGenerator make(String store) {
            return Snowflake.builder().node(7).build();
        }
    },
    LEASE {
        @Override
        IdGenerator make(String store) {
            return Snowflake.builder().lease(store + LEASED).build();
        }
    },
    COUNTER {
        @Override
        IdGenerator make(String store) {
            return Counter.open("orders", store);
        }
    };

    /**
     * The nodes that tests lease. A test without a lease must use other nodes, because a process cannot lease a node
     * that it has used without a lease.
     */
    public static final String LEASED = "?nodes=100-199";

    abstract IdGenerator make(String store);

    public interface Test {
        void with(IdGenerator ids) throws Exception;
    }

    public void run(Test test) throws Exception {
        Path folder = Files.createTempDirectory("polyflake-recipes-");
        IdGenerator ids = make("sqlite://" + folder + "/store.db");
        try {
            test.with(ids);
        } finally {
            ((AutoCloseable) ids).close();
            delete(folder);
        }
    }

    private static void delete(Path folder) throws IOException {
        try (var files = Files.list(folder)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
        }
        Files.delete(folder);
    }
}
