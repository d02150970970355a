package io.polyflake;

import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The waiting calls of a Counter. One thread at a time fetches numbers for all calls that are waiting when the fetch
 * begins. Later calls are served by the next fetch, because they may have begun after greater numbers were returned.
 */
final class CounterQueue {
    /** The most numbers to fetch at once. */
    private static final int MOST_FETCHED = 1 << 20;
    /** The library's wait should end first, because the library may know more about the cause. */
    private static final long GRACE_NS = TimeUnit.MILLISECONDS.toNanos(10);

    private final Counter counter;
    private final long longestNs;
    private final ReentrantLock lock = new ReentrantLock();
    private final SequencedSet<Waiter> waiters = new LinkedHashSet<>();
    private boolean isFetching;

    /** A waiting call. */
    private static final class Waiter {
        final long[] numbers;
        final Condition news;
        int filled;
        long since = System.nanoTime();
        boolean isAsked;
        PolyflakeException failure;

        Waiter(long[] numbers, int filled, Condition news) {
            this.numbers = numbers;
            this.filled = filled;
            this.news = news;
        }

        int left() {
            return numbers.length - filled;
        }
    }

    CounterQueue(Counter counter, Duration maxWait) {
        this.counter = counter;
        longestNs = TimeUnit.MILLISECONDS.toNanos(maxWait.toMillis()) + GRACE_NS;
    }

    /** Waits for the rest of the numbers; the first {@code filled} are already in the array. */
    void fill(long[] numbers, int filled) {
        lock.lock();
        Waiter waiter = new Waiter(numbers, filled, lock.newCondition());
        try {
            waiters.add(waiter);
            if (!isFetching) {
                StoreThreads.start("counter", this::fetch);
                isFetching = true; // set last: starting may fail, and the new thread waits for the lock
            }
            while (waiter.left() > 0 && waiter.failure == null) {
                long left = waiter.since + longestNs - System.nanoTime();
                if (left <= 0) {
                    break;
                }
                waiter.news.awaitNanos(left);
            }
        } catch (InterruptedException interrupt) {
            Thread.currentThread().interrupt();
            throw new WaitInterruptedException();
        } finally {
            waiters.remove(waiter);
            lock.unlock();
        }
        if (waiter.failure != null) {
            throw waiter.failure;
        }
        // The wait is over: take the numbers in hand, or throw an exception that says why there are none.
        filled = waiter.filled;
        while (filled < numbers.length) {
            filled = counter.fillInHand(numbers, filled);
            if (filled < numbers.length) {
                numbers[filled++] = counter.inHand();
            }
        }
    }

    /** Fetches numbers until no call is waiting. */
    private void fetch() {
        int wanted = ask();
        while (wanted > 0) {
            long[] numbers = {};
            PolyflakeException failure = null;
            try {
                numbers = counter.fetch(wanted);
            } catch (PolyflakeException exception) {
                failure = exception;
            } catch (Throwable thrown) {
                failure = Detail.plain(Native.INTERNAL, thrown);
            }
            serve(numbers, failure);
            wanted = ask();
        }
    }

    /** Returns how many numbers the first waiting calls want, and includes those calls in this fetch. */
    private int ask() {
        int most = mostAtOnce();
        lock.lock();
        try {
            int wanted = 0;
            for (Waiter waiter : waiters) {
                if (wanted == most) {
                    break;
                }
                wanted += Math.min(waiter.left(), most - wanted);
                waiter.isAsked = true;
            }
            isFetching = wanted > 0;
            return wanted;
        } finally {
            lock.unlock();
        }
    }

    private void serve(long[] numbers, PolyflakeException failure) {
        lock.lock();
        try {
            int given = 0;
            for (Waiter waiter : List.copyOf(waiters)) {
                if (!waiter.isAsked) {
                    break;
                }
                waiter.isAsked = false;
                waiters.remove(waiter);
                int count = Math.min(waiter.left(), numbers.length - given);
                System.arraycopy(numbers, given, waiter.numbers, waiter.filled, count);
                waiter.filled += count;
                given += count;
                if (failure != null) {
                    waiter.failure = failure.again();
                } else if (waiter.left() > 0) {
                    // A batch may wait this long for each run. It goes to the back of the queue, because the other
                    // calls want fewer numbers.
                    waiter.since = System.nanoTime();
                    waiters.add(waiter);
                    continue;
                }
                waiter.news.signal();
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Returns the size of a segment, so that one answer from the store serves the waiting calls. With a step of 1, the
     * store hands out as many numbers at once as are requested.
     */
    private int mostAtOnce() {
        try {
            long step = counter.stats().step();
            return step > 1 ? (int) Math.min(step, MOST_FETCHED) : MOST_FETCHED;
        } catch (PolyflakeException closed) {
            return MOST_FETCHED;
        }
    }
}
