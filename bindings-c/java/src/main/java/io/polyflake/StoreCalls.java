package io.polyflake;

import java.time.Duration;
import java.util.concurrent.FutureTask;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Calls that wait for a store inside the library, each on a separate thread. Only a few run at once, no matter how many
 * threads make them.
 */
final class StoreCalls {
    private static final int FEWEST = 4;
    private static final int MOST = 32;
    private static final Duration GRACE = Duration.ofMillis(10);

    private final Semaphore slots =
            new Semaphore(Math.clamp(Runtime.getRuntime().availableProcessors(), FEWEST, MOST), true);
    private final Duration maxWait;

    StoreCalls(Duration maxWait) {
        this.maxWait = maxWait;
    }

    /**
     * Makes a call. If there is no answer within maxWait, including the wait for a turn, returns the result of {@code
     * tooLate}, which does not wait. The call then continues in its thread, and its answer is dropped.
     */
    <T> T call(Supplier<T> call, Supplier<T> tooLate) {
        long until = System.nanoTime() + maxWait.toNanos();
        try {
            if (!slots.tryAcquire(maxWait.toNanos(), TimeUnit.NANOSECONDS)) {
                return tooLate.get();
            }
        } catch (InterruptedException interrupt) {
            Thread.currentThread().interrupt();
            throw new WaitInterruptedException();
        }
        FutureTask<T> asking = new FutureTask<>(() -> {
            try {
                return call.get();
            } finally {
                slots.release();
            }
        });
        try {
            StoreThreads.start("store", asking);
        } catch (Throwable noThread) {
            slots.release();
            throw noThread;
        }
        // If the library's wait began at once, it ends first, and the library may know more about the cause.
        long left = until + GRACE.toNanos() - System.nanoTime();
        return StoreThreads.result(asking, Duration.ofNanos(left)).orElseGet(tooLate);
    }
}
