package io.polyflake;

/**
 * The native library {@code libpolyflake} is missing, has the wrong version, or is not allowed to load. The message
 * says where Polyflake looked and what to do.
 */
public final class LibraryException extends RuntimeException {
    private static final long serialVersionUID = 1;

    LibraryException(String message, Throwable cause) {
        super(message, cause);
    }
}
