package io.polyflake;

/** An ID does not fit its layout, or a string is not an ID. */
public final class InvalidIdException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    InvalidIdException(Details details) {
        super(details);
    }
}
