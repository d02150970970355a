package io.polyflake;

import static org.junit.jupiter.api.Assertions.*;

import org.junit.jupiter.api.Test;

class FirstTest {
    @Test
    void firstId() {
        try (var ids = Snowflake.builder().node(7).build()) {
            long id = ids.nextId();
            assertEquals(7, ids.decode(id).node());
            assertTrue(ids.nextId() > id);
        }
    }
}
