package io.polyflake;

/** A bug in Polyflake; never the caller's fault. */
public final class InternalException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    InternalException(Details details) {
        super(details);
    }
}
