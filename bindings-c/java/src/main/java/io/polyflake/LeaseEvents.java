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
import java.security.Security;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Reports events about the leases, counters and sequences of this process: a lease was acquired, lost or given back, a
 * store is not answering, a counter has stopped. By default, the {@link System.Logger} named {@code io.polyflake} logs
 * them, at the levels INFO and WARNING. {@link #onEvent} sets a listener instead.
 */
public final class LeaseEvents {
    /** The most events that are kept for a slow listener; any more are dropped. */
    private static final int MOST_KEPT = 1000;

    /** All class loaders use this lock. */
    private static final Object LOCK = Security.class;

    /** One for the process, because the library has only one listener. */
    private static final LeaseEvents PROCESS = new LeaseEvents();

    private final LinkedBlockingQueue<LeaseEvent> events = new LinkedBlockingQueue<>(MOST_KEPT);
    private final AtomicBoolean isTelling = new AtomicBoolean();
    private final AtomicBoolean hasWarned = new AtomicBoolean();
    private volatile Consumer<? super LeaseEvent> listener = LeaseEvents::log;
    private int open;
    /** The C function that the library calls; null while nothing is open. */
    private Arena function;
    private String functionAddress;

    private LeaseEvents() {}

    /**
     * Sets the listener, which replaces the logger or the previous listener. A separate thread calls the listener with
     * one event at a time, so the listener may block. Class loaders that each have the package share one library: its
     * events go to the class loader that was the last to open its first lease, counter or sequences.
     *
     * <p>The package keeps the listener alive, and so its class loader: if the package is in a parent class loader,
     * call {@link #logEvents} when the application shuts down.
     *
     * @param listener the listener; {@code event -> {}} ignores all events
     */
    public static void onEvent(Consumer<? super LeaseEvent> listener) {
        PROCESS.listener = Objects.requireNonNull(listener, "listener");
    }

    /** Goes back to logging events, which is the default, and removes the listener set by {@link #onEvent}. */
    public static void logEvents() {
        PROCESS.listener = LeaseEvents::log;
    }

    /**
     * An open lease, counter or sequences. While any is open, the library calls a C function that reports its events.
     * That function keeps this class, and so the class loader, alive.
     */
    static final class Use {
        private final AtomicBoolean isOpen = new AtomicBoolean(true);

        private Use() {}

        /** Closes the object, and then stops listening if it was the last. May be called more than once. */
        void close(Runnable close) {
            boolean isFirst = isOpen.compareAndSet(true, false);
            try {
                close.run();
            } finally {
                if (isFirst) {
                    PROCESS.closed();
                }
            }
        }
    }

    /** Opens something that reports events. If that fails, nothing is left open. */
    static <T> T open(Function<Use, T> open) {
        PROCESS.opens();
        Use use = new Use();
        try {
            return open.apply(use);
        } catch (Throwable failure) {
            use.close(() -> {});
            throw failure;
        }
    }

    private void opens() {
        String property = property(); // before the lock: this may load the library, which takes locks too
        synchronized (LOCK) {
            if (open == 0) {
                List<String> listening = listening(property);
                Arena arena = Arena.ofShared();
                MemorySegment call = Native.upcall(handle().bindTo(this),
                        FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.ADDRESS), arena);
                functionAddress = Long.toString(call.address());
                listening.add(functionAddress);
                setListening(property, listening);
                Native.setLeaseListener(call);
                function = arena;
            }
            open++;
        }
    }

    private void closed() {
        String property = property();
        synchronized (LOCK) {
            open--;
            if (open > 0) {
                return;
            }
            List<String> listening = listening(property);
            boolean isListener = listening.getLast().equals(functionAddress);
            listening.remove(functionAddress);
            setListening(property, listening);
            if (isListener) {
                long before = listening.isEmpty() ? 0 : Long.parseLong(listening.getLast());
                // This waits until the library has left the function.
                Native.setLeaseListener(MemorySegment.ofAddress(before));
            }
            function.close();
            function = null;
        }
    }

    /** Returns the addresses of the C functions of all listening class loaders, with the library's listener last. */
    private static List<String> listening(String property) {
        String addresses = Security.getProperty(property);
        return addresses == null || addresses.isEmpty()
                ? new ArrayList<>() : new ArrayList<>(List.of(addresses.split(",")));
    }

    private static void setListening(String property, List<String> addresses) {
        Security.setProperty(property, String.join(",", addresses));
    }

    /**
     * Returns the name of a security property. All class loaders share these properties, and nothing restores their
     * earlier values, as tests do with system properties. Each copy of the library has a different name.
     */
    private static String property() {
        return "io.polyflake.listening." + Native.leaseListenerSetter();
    }

    private static MethodHandle handle() {
        try {
            return MethodHandles.lookup().findVirtual(LeaseEvents.class, "heard",
                    MethodType.methodType(void.class, MemorySegment.class, MemorySegment.class));
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
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
            if (isTelling.compareAndSet(false, true)) {
                startTelling();
            }
        } catch (Throwable lost) {
            // There is no one to report this to.
        }
    }

    private void startTelling() {
        try {
            StoreThreads.start("events", this::tell);
        } catch (Throwable noThread) {
            isTelling.set(false); // the next event tries again
        }
    }

    /** Delivers the pending events, on a thread that then exits, because a thread would keep the class loader alive. */
    private void tell() {
        do {
            for (LeaseEvent event = events.poll(); event != null; event = events.poll()) {
                tell(event);
            }
            isTelling.set(false);
        } while (!events.isEmpty() && isTelling.compareAndSet(false, true));
    }

    private void tell(LeaseEvent event) {
        try {
            listener.accept(event); // the current listener, which may be newer than the event
        } catch (Throwable failure) {
            try {
                logger().log(Level.WARNING, "a listener of lease events failed", failure);
            } catch (Throwable failedToo) {
                // The next event is still delivered.
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
