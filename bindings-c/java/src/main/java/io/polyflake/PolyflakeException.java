package io.polyflake;

import java.time.Duration;

/**
 * An error from Polyflake. The code, the name and the message come from the library and are the same in every language.
 * Each code has its own subclass.
 *
 * <pre>{@code
 * try {
 *     id = ids.nextId();
 * } catch (ClockMovedBackwardsException e) {
 *     retryIn(e.retryAfter());
 * }
 * }</pre>
 */
public abstract sealed class PolyflakeException extends RuntimeException permits
        InvalidLayoutException,
        UnknownLayoutException,
        InvalidNodeException,
        InvalidOptionException,
        InvalidIdException,
        TimeOutOfRangeException,
        ClockMovedBackwardsException,
        SequenceExhaustedException,
        ForkedException,
        ClockFailedException,
        StateFileException,
        LeaseUnavailableException,
        LeaseLostException,
        ClosedException,
        CounterUnavailableException,
        InternalException {
    private static final long serialVersionUID = 1;

    /** The permanent number. */
    private final int code;
    /** The permanent name. */
    private final String name;
    /** How many ms the clock is behind. */
    private final long behindMs;
    /** How many ms to wait before trying again. */
    private final long retryAfterMs;

    /** The library's description of a failure. */
    record Details(int code, String name, String message, long behindMs, long retryAfterMs, Throwable cause) {}

    PolyflakeException(Details details) {
        super(details.message, details.cause);
        code = details.code;
        name = details.name;
        behindMs = details.behindMs;
        retryAfterMs = details.retryAfterMs;
    }

    static PolyflakeException of(Details details) {
        return switch (details.code) {
            case 1 -> new InvalidLayoutException(details);
            case 2 -> new UnknownLayoutException(details);
            case 3 -> new InvalidNodeException(details);
            case 4 -> new InvalidOptionException(details);
            case 5 -> new InvalidIdException(details);
            case 6 -> new TimeOutOfRangeException(details);
            case 7 -> new ClockMovedBackwardsException(details);
            case 8 -> new SequenceExhaustedException(details);
            case 9 -> new ForkedException(details);
            case 10 -> new ClockFailedException(details);
            case 11 -> new StateFileException(details);
            case 12 -> new LeaseUnavailableException(details);
            case 13 -> new LeaseLostException(details);
            case 14 -> new ClosedException(details);
            case 15 -> new CounterUnavailableException(details);
            default -> new InternalException(details);
        };
    }

    /** Returns a copy for another thread. */
    PolyflakeException again() {
        return of(new Details(code, name, getMessage(), behindMs, retryAfterMs, getCause()));
    }

    /**
     * Returns the permanent number of the error.
     *
     * @return the number, such as 7
     */
    public int code() {
        return code;
    }

    /**
     * Returns the permanent name of the error.
     *
     * @return the name, such as {@code clock_moved_backwards}
     */
    public String name() {
        return name;
    }

    /**
     * Returns how far the clock is behind the last ID, less {@code maxAhead}.
     *
     * @return the distance, for {@link ClockMovedBackwardsException}; otherwise zero
     */
    public Duration behind() {
        return duration(behindMs);
    }

    /**
     * Returns how long to wait before trying again.
     *
     * @return how far the clock must advance before the next ID, for {@link ClockMovedBackwardsException} and {@link
     *     SequenceExhaustedException}; the time until the store is queried again, for {@link LeaseLostException};
     *     otherwise zero
     */
    public Duration retryAfter() {
        return duration(retryAfterMs);
    }

    /** Converts an unsigned number of ms to a duration. */
    static Duration duration(long ms) {
        return Duration.ofMillis(ms < 0 ? Long.MAX_VALUE : ms);
    }
}
