package io.polyflake;

/** The Snowflake or Sequences was created in a parent process. */
public final class ForkedException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    ForkedException(Details details) {
        super(details);
    }
}
