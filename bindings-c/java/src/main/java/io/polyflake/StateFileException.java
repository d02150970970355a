package io.polyflake;

/**
 * A state file cannot be opened, created or synced; is damaged; belongs to another layout or node; was renamed, deleted
 * or replaced; or is far ahead of the clock.
 */
public final class StateFileException extends PolyflakeException {
    private static final long serialVersionUID = 1;

    StateFileException(Details details) {
        super(details);
    }
}
