package io.polyflake;

/** The name or value of any other option is invalid. */
public final class InvalidOptionException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    InvalidOptionException(Details details) {
        super(details);
    }
}
