package io.polyflake;

/**
 * The lease has expired, and the store has not renewed it in the time that the call may wait. The Snowflake recovers by
 * itself once the store has, or has given another node, and so do {@link Sequences}.
 */
public final class LeaseLostException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    LeaseLostException(Details details) {
        super(details);
    }
}
