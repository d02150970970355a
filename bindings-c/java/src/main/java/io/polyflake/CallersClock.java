package io.polyflake;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.time.InstantSource;

/** A Java clock that the library can call, as a {@code polyflake_clock}. */
final class CallersClock {
    private static final FunctionDescriptor FUNCTION = FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS);

    /** How many nested calls the stack must have room for. With 400, JVMs crashed; with 1,000, none did. */
    private static final int DEPTH = 1200;

    private final InstantSource clock;
    // A call reads the clock on the thread that makes it, so each call finds its own failure.
    private final ThreadLocal<Throwable> thrown = new ThreadLocal<>();

    CallersClock(InstantSource clock) {
        this.clock = clock;
    }

    /**
     * Returns the C function, which lives as long as the arena. The function keeps this clock reachable, so the clock
     * must not keep the arena reachable.
     */
    MemorySegment function(Arena arena) {
        return Native.upcall(handle().bindTo(this), FUNCTION, arena);
    }

    private static MethodHandle handle() {
        try {
            return MethodHandles.lookup().findVirtual(CallersClock.class, "read",
                    MethodType.methodType(int.class, MemorySegment.class, MemorySegment.class));
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /**
     * Throws a StackOverflowError here if the stack is nearly used up. On entry from C, nothing could catch the error,
     * and it would terminate the JVM.
     */
    static void requireStack() {
        reach(DEPTH);
    }

    private static int reach(int depth) {
        return depth == 0 ? 0 : reach(depth - 1) + 1;
    }

    /** Called by the library, so it must not throw. */
    private int read(MemorySegment user, MemorySegment unixMs) {
        try {
            Native.at(unixMs, Long.BYTES).set(JAVA_LONG, 0, clock.millis());
            return 0;
        } catch (Throwable failure) {
            thrown.set(failure);
            return 1;
        }
    }

    /**
     * Returns the exception that the clock threw in this thread's failed call, or null if the call failed for another
     * reason. An Error is rethrown.
     */
    Throwable causeOf(int status) {
        if (status != Native.CLOCK_FAILED) {
            return null;
        }
        Throwable cause = thrown.get();
        thrown.remove();
        if (cause instanceof Error error) {
            throw error;
        }
        return cause;
    }
}
