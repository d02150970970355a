package io.polyflake;

/**
 * The clock has stepped back by more than {@code maxBackward} allows. Nothing was issued. The Snowflake recovers on its
 * own once the clock has caught up.
 */
public final class ClockMovedBackwardsException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    ClockMovedBackwardsException(Details details) {
        super(details);
    }
}
