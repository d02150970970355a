package io.polyflake;

/**
 * No node is free, another process holds the lease for the {@link Sequences}, or the store cannot be reached. The
 * message says which.
 */
public final class LeaseUnavailableException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    LeaseUnavailableException(Details details) {
        super(details);
    }
}
