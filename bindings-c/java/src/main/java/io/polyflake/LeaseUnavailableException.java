package io.polyflake;

/**
 * No node is free to be leased, another process has the {@link Sequences}, or the store cannot be reached. The message
 * says which of them.
 */
public final class LeaseUnavailableException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    LeaseUnavailableException(Details details) {
        super(details);
    }
}
