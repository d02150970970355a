package io.polyflake;

/** The Snowflake, Counter or Sequences was closed, before the call or while the call waited. */
public final class ClosedException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    ClosedException(Details details) {
        super(details);
    }
}
