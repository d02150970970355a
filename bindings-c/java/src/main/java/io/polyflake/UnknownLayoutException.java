package io.polyflake;

/** No preset has this name. The message lists similar ones. */
public final class UnknownLayoutException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    UnknownLayoutException(Details details) {
        super(details);
    }
}
