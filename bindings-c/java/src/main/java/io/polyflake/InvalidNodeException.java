package io.polyflake;

/** A node field is missing, unknown or out of range. */
public final class InvalidNodeException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    InvalidNodeException(Details details) {
        super(details);
    }
}
