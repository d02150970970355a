package io.polyflake;

/**
 * The lease has expired, and the store did not renew it within the time that the call may wait. The Snowflake recovers
 * on its own once the store renews the lease or assigns another node. {@link Sequences} also recover on their own.
 */
public final class LeaseLostException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    LeaseLostException(Details details) {
        super(details);
    }
}
