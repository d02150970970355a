package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/**
 * A batch that is filled in runs of IDs. All its IDs have the same node: if the lease assigns another node, the batch
 * starts over.
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

    /** Returns the space for the next IDs, at most {@code most} of them. */
    MemorySegment room(int most) {
        return ids.asSlice(filled * Long.BYTES, Math.min(length(ids) - filled, most) * Long.BYTES);
    }

    /** Copies the next IDs from another segment. */
    void put(MemorySegment run, long count) {
        MemorySegment.copy(run, 0, ids, filled * Long.BYTES, count * Long.BYTES);
        filled(count);
    }

    /** Records that the next IDs are in place. */
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
