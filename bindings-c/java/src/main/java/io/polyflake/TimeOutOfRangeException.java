package io.polyflake;

/** A time is before the layout's epoch or past its end. */
public final class TimeOutOfRangeException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    TimeOutOfRangeException(Details details) {
        super(details);
    }
}
