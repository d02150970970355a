package io.polyflake;

/** The layout is invalid. */
public final class InvalidLayoutException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    InvalidLayoutException(Details details) {
        super(details);
    }
}
