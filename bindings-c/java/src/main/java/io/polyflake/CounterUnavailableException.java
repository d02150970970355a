package io.polyflake;

/**
 * A counter, or a section of {@link Sequences}, has no numbers left, because its store handed out none in time or it
 * has reached its end.
 */
public final class CounterUnavailableException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    CounterUnavailableException(Details details) {
        super(details);
    }
}
