package io.polyflake;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

/** All IDs of a batch have the same node. In these tests, the node is the last digit. */
class FillingTest {
    private final long[] ids = new long[4];
    private final Filling filling = new Filling(MemorySegment.ofArray(ids), 0xF);

    private void put(long... run) {
        filling.put(MemorySegment.ofArray(run), run.length);
    }

    @Test
    void runsOfOneNode() {
        put(0x11, 0x21);
        assertFalse(filling.isFull());
        assertEquals(2, Filling.length(filling.room(10)));
        assertEquals(1, Filling.length(filling.room(1)));
        put();
        put(0x31, 0x41);
        assertTrue(filling.isFull());
        assertArrayEquals(new long[] {0x11, 0x21, 0x31, 0x41}, ids);
    }

    @Test
    void anotherNodeBeginsAgain() {
        put(0x11, 0x21, 0x31);
        put(0x42);
        assertFalse(filling.isFull());
        assertEquals(3, Filling.length(filling.room(10)));
        put(0x52, 0x62, 0x72);
        assertTrue(filling.isFull());
        assertArrayEquals(new long[] {0x42, 0x52, 0x62, 0x72}, ids);
    }
}
