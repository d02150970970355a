package io.polyflake;

/** The caller's clock threw an exception, which is the cause. */
public final class ClockFailedException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    ClockFailedException(Details details) {
        super(details);
    }
}
