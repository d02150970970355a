package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Turns a status into an exception with the details from the library, a {@code polyflake_detail}. */
final class Detail {
    private static final long SIZE = 520;
    private static final long BEHIND_MS = 8;
    private static final long RETRY_AFTER_MS = 16;
    private static final long MESSAGE = 24;

    final MemorySegment segment;

    Detail(Arena arena) {
        segment = Native.struct(arena, SIZE);
    }

    private Detail(MemorySegment segment) {
        this.segment = segment;
        segment.set(JAVA_LONG, 0, SIZE);
    }

    /** Returns a detail for critical calls, which may use the heap. It is an array of longs, so that it is aligned. */
    static Detail onHeap() {
        return new Detail(MemorySegment.ofArray(new long[(int) SIZE / Long.BYTES]));
    }

    void check(int status) {
        if (status != Native.OK) {
            throw failure(status, null);
        }
    }

    PolyflakeException failure(int status, Throwable cause) {
        return PolyflakeException.of(new PolyflakeException.Details(status, Native.statusName(status),
                segment.getString(MESSAGE), segment.get(JAVA_LONG, BEHIND_MS), segment.get(JAVA_LONG, RETRY_AFTER_MS),
                cause));
    }

    /** Returns a failure described only by its code. */
    static PolyflakeException plain(int status, Throwable cause) {
        String name = Native.statusName(status);
        String message = name + ": " + Native.statusMessage(status);
        return PolyflakeException.of(new PolyflakeException.Details(status, name, message, 0, 0, cause));
    }

    /** Returns an exception for an error detected in Java, with the library's message. */
    static PolyflakeException inWords(int status, Object value) {
        String name = Native.statusName(status);
        String message = name + ": " + Native.statusMessage(status) + ": " + value;
        return PolyflakeException.of(new PolyflakeException.Details(status, name, message, 0, 0, null));
    }
}
