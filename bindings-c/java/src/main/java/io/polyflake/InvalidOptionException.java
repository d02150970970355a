package io.polyflake;

/** An option has an invalid name or value. Layouts and nodes have their own exceptions. */
public final class InvalidOptionException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    InvalidOptionException(Details details) {
        super(details);
    }
}
