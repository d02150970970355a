package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/**
 * A batch that gets its IDs in runs. All its IDs are of one node: where a lease has brought another, it begins again.
 */
final class Filling {
    private final MemorySegment ids;
    private final long nodeMask;
    private long filled;

    Filling(MemorySegment ids, long nodeMask) {
        this.ids = ids;
        this.nodeMask = nodeMask;
    }

    static long length(MemorySegment ids) {
        return ids.byteSize() / Long.BYTES;
    }

    boolean isFull() {
        return filled == length(ids);
    }

    /** Where the next IDs go, of which there may be so many. */
    MemorySegment room(int most) {
        return ids.asSlice(filled * Long.BYTES, Math.min(length(ids) - filled, most) * Long.BYTES);
    }

    /** Takes the next IDs from elsewhere. */
    void put(MemorySegment run, long count) {
        MemorySegment.copy(run, 0, ids, filled * Long.BYTES, count * Long.BYTES);
        filled(count);
    }

    /** The next IDs are in their room. */
    void filled(long count) {
        long bytes = filled * Long.BYTES;
        boolean isOtherNode = filled > 0 && count > 0
                && ((ids.get(JAVA_LONG, 0) ^ ids.get(JAVA_LONG, bytes)) & nodeMask) != 0;
        if (isOtherNode) {
            MemorySegment.copy(ids, bytes, ids, 0, count * Long.BYTES);
            filled = 0;
        }
        filled += count;
    }
}
