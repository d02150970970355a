package io.polyflake;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Objects;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * What happens to the leases, counters and sequences of this process: a lease was acquired, lost or given back, a store
 * does not answer, a counter has stopped. Unless {@link #onEvent} says otherwise, the {@link System.Logger} named
 * {@code io.polyflake} logs it, with the levels INFO and WARNING.
 */
public final class LeaseEvents {
    /** How many events wait for a slow listener; those that come then are dropped. */
    private static final int MOST_KEPT = 1000;

    /** Of the process: the library has one listener. */
    private static final LeaseEvents PROCESS = new LeaseEvents();

    private final LinkedBlockingQueue<LeaseEvent> events = new LinkedBlockingQueue<>(MOST_KEPT);
    private final AtomicBoolean isListening = new AtomicBoolean();
    private final AtomicBoolean hasWarned = new AtomicBoolean();
    private volatile Consumer<? super LeaseEvent> listener = LeaseEvents::log;

    private LeaseEvents() {}

    /**
     * Sets who is told, in place of the logger or of the listener before. It is called in a thread of its own, one
     * event after another, and may block.
     *
     * @param listener the listener; {@code event -> {}} for none
     */
    public static void onEvent(Consumer<? super LeaseEvent> listener) {
        PROCESS.listener = Objects.requireNonNull(listener, "listener");
        listen();
    }

    /** Has the library tell what happens, from the first lease or counter on. */
    static void listen() {
        if (!PROCESS.isListening.compareAndSet(false, true)) {
            return;
        }
        try {
            MethodHandle heard = MethodHandles.lookup().findVirtual(LeaseEvents.class, "heard",
                    MethodType.methodType(void.class, MemorySegment.class, MemorySegment.class));
            Native.setLeaseListener(Native.upcall(heard.bindTo(PROCESS),
                    FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.ADDRESS), Arena.global()));
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
        StoreThreads.start("events", PROCESS::tell);
    }

    /** Warns, once, of another copy of the library in this process, which has cursors of its own. */
    static void warnOfCopies() {
        if (PROCESS.hasWarned.get()) {
            return;
        }
        String warning = Native.copiesWarning();
        if (warning != null && PROCESS.hasWarned.compareAndSet(false, true)) {
            logger().log(Level.WARNING, warning);
        }
    }

    /** Called on the library's thread, which must not be kept waiting, and by C: so it must not throw. */
    private void heard(MemorySegment user, MemorySegment event) {
        try {
            events.offer(LeaseEvent.of(event));
        } catch (Throwable lost) {
            // Nobody can be told.
        }
    }

    private void tell() {
        while (true) {
            try {
                LeaseEvent event = events.take();
                listener.accept(event); // the present one, not that of when the wait began
            } catch (InterruptedException interrupt) {
                return;
            } catch (Throwable failure) {
                logger().log(Level.WARNING, "a listener of lease events failed", failure);
            }
        }
    }

    private static void log(LeaseEvent event) {
        logger().log(event.isWarning() ? Level.WARNING : Level.INFO, event.message());
    }

    private static Logger logger() {
        return System.getLogger("io.polyflake");
    }
}
