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
 * Reports events about the leases, counters and sequences of this process: a lease was acquired, lost or given back, a
 * store does not answer, a counter has stopped. By default, the {@link System.Logger} named {@code io.polyflake} logs
 * them, at the levels INFO and WARNING. {@link #onEvent} sets a listener instead.
 */
public final class LeaseEvents {
    /** The most events that are kept for a slow listener; further events are dropped. */
    private static final int MOST_KEPT = 1000;

    /** One for the process, because the library has one listener. */
    private static final LeaseEvents PROCESS = new LeaseEvents();

    private final LinkedBlockingQueue<LeaseEvent> events = new LinkedBlockingQueue<>(MOST_KEPT);
    private final AtomicBoolean isListening = new AtomicBoolean();
    private final AtomicBoolean hasWarned = new AtomicBoolean();
    private volatile Consumer<? super LeaseEvent> listener = LeaseEvents::log;

    private LeaseEvents() {}

    /**
     * Sets the listener, which replaces the logger or the previous listener. A separate thread calls the listener with
     * one event after another, so the listener may block.
     *
     * @param listener the listener; {@code event -> {}} ignores all events
     */
    public static void onEvent(Consumer<? super LeaseEvent> listener) {
        PROCESS.listener = Objects.requireNonNull(listener, "listener");
        listen();
    }

    /** Starts listening to the library, before the first lease or counter is opened. */
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

    /** Logs a single warning if this process has another copy of the library, which has its own cursors. */
    static void warnOfCopies() {
        if (PROCESS.hasWarned.get()) {
            return;
        }
        String warning = Native.copiesWarning();
        if (warning != null && PROCESS.hasWarned.compareAndSet(false, true)) {
            logger().log(Level.WARNING, warning);
        }
    }

    /** Called by C on the library's thread, so this must neither block nor throw. */
    private void heard(MemorySegment user, MemorySegment event) {
        try {
            events.offer(LeaseEvent.of(event));
        } catch (Throwable lost) {
            // There is nobody to report this to.
        }
    }

    private void tell() {
        while (true) {
            try {
                LeaseEvent event = events.take();
                listener.accept(event); // the current listener, which may have changed during the wait
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
