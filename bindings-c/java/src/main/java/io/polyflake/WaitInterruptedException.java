package io.polyflake;

/**
 * The thread was interrupted while a call waited. The call returned no ID; IDs already taken for it are lost, never
 * repeated. The thread's interrupt flag is still set.
 *
 * <p>A call that does not have to wait ignores the flag.
 */
public final class WaitInterruptedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    WaitInterruptedException() {
        super("polyflake: the thread was interrupted while it waited");
    }
}
