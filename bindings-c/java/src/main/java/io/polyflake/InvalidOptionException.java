package io.polyflake;

/** An option's name or value is invalid, other than the layout or the node. */
public final class InvalidOptionException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    InvalidOptionException(Details details) {
        super(details);
    }
}
