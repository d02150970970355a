package io.polyflake;

/** No ID became available within the time that the call may wait. */
public final class SequenceExhaustedException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    SequenceExhaustedException(Details details) {
        super(details);
    }
}
