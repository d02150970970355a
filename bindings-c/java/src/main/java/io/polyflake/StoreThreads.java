package io.polyflake;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/**
 * Threads for calls that wait for a store inside the library, where a thread cannot be interrupted and a virtual thread
 * would block its carrier.
 */
final class StoreThreads {
    private static final Duration FOREVER = Duration.ofNanos(Long.MAX_VALUE);

    private StoreThreads() {}

    static void start(String name, Runnable run) {
        Thread thread = Thread.ofPlatform()
                .daemon()
                .name("polyflake-" + name)
                .inheritInheritableThreadLocals(false)
                .unstarted(run);
        // A long-lived thread must not keep alive a class loader that the program may drop.
        thread.setContextClassLoader(null);
        thread.start();
    }

    /** Opens an object. After an interrupt, the attempt continues in the background, and its result is closed. */
    static <T extends AutoCloseable> T open(Supplier<T> open) {
        FutureTask<T> opening = new FutureTask<>(open::get);
        start("open", opening);
        try {
            return result(opening);
        } catch (WaitInterruptedException interrupted) {
            start("close", () -> {
                try {
                    result(opening).close();
                } catch (Exception neverOpened) {
                    // There is no one to report this to.
                }
            });
            throw interrupted;
        }
    }

    /** Makes a call, which runs to completion even after an interrupt. */
    static void runToTheEnd(Runnable call) {
        if (!Thread.currentThread().isVirtual()) {
            call.run();
            return;
        }
        FutureTask<Void> running = new FutureTask<>(call, null);
        start("close", running);
        boolean isInterrupted = false;
        while (true) {
            try {
                running.get();
                break;
            } catch (InterruptedException interrupt) {
                isInterrupted = true;
            } catch (ExecutionException failure) {
                throw rethrown(failure);
            }
        }
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
    }

    static <T> T result(FutureTask<T> task) {
        return result(task, FOREVER).orElseThrow();
    }

    /** Returns the task's result, or empty if the task has not finished within that time. */
    static <T> Optional<T> result(FutureTask<T> task, Duration longest) {
        try {
            return Optional.of(task.get(longest.toNanos(), TimeUnit.NANOSECONDS));
        } catch (TimeoutException tooLate) {
            return Optional.empty();
        } catch (InterruptedException interrupt) {
            Thread.currentThread().interrupt();
            throw new WaitInterruptedException();
        } catch (ExecutionException failure) {
            throw rethrown(failure);
        }
    }

    private static RuntimeException rethrown(ExecutionException failure) {
        if (failure.getCause() instanceof PolyflakeException exception) {
            exception.setStackTrace(new Throwable().getStackTrace()); // the stack of the thread that asked
        }
        if (failure.getCause() instanceof RuntimeException exception) {
            return exception;
        }
        throw failure.getCause() instanceof Error error ? error : new AssertionError(failure.getCause());
    }
}
