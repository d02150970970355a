package io.polyflake;

import java.time.Duration;
import java.util.concurrent.FutureTask;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Calls that wait for a store inside the library, each on a separate thread. Only a few run at once, however many
 * threads ask.
 */
final class StoreCalls {
    private static final int FEWEST = 4;
    private static final int MOST = 32;

    private final Semaphore slots =
            new Semaphore(Math.clamp(Runtime.getRuntime().availableProcessors(), FEWEST, MOST), true);
    private final Duration maxWait;

    StoreCalls(Duration maxWait) {
        this.maxWait = maxWait;
    }

    /** Makes a call; or after maxWait without its turn, {@code tooLate}, which does not wait. */
    <T> T call(Supplier<T> call, Supplier<T> tooLate) {
        try {
            if (!slots.tryAcquire(maxWait.toMillis(), TimeUnit.MILLISECONDS)) {
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
        return StoreThreads.result(asking);
    }
}
