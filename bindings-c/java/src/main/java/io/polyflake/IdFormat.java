package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * A text format for IDs. Strings in {@link #BASE32}, {@link #BASE62} and {@link #UUID} sort in the order of the IDs.
 *
 * <pre>{@code
 * String text = IdFormat.BASE62.format(id);
 * long id = IdFormat.BASE62.parse(text);
 * }</pre>
 *
 * <p>An ID is an unsigned 64-bit number. If the top bit is set, which is possible only in 64-bit layouts, the {@code
 * long} is negative. {@link #DECIMAL} writes it as {@link Long#toUnsignedString(long)} does.
 */
public enum IdFormat {
    /** A decimal number. */
    DECIMAL("decimal"),
    /** Written in lower case, and read in either case. */
    HEX("hex"),
    /** Crockford's base 32, with 13 digits. When reading, also accepts lower case, I and L for 1, and O for 0. */
    BASE32("base32"),
    /** Written in lower case, and read in either case. */
    BASE36("base36"),
    /** Base 58, with Bitcoin's alphabet. */
    BASE58("base58"),
    /** Base 62, with the alphabet 0-9A-Za-z and 11 digits. */
    BASE62("base62"),
    /** A version 8 UUID, for columns of that type. Written in lower case, and read in either case. */
    UUID("uuid"),
    /** The base 32 of the Go package bwmarrin/snowflake. */
    BWMARRIN_BASE32("bwmarrin-base32"),
    /**
     * The base 58 of the Go package bwmarrin/snowflake. {@link #BASE58} reads such a string as a different ID, without
     * an error.
     */
    BWMARRIN_BASE58("bwmarrin-base58");

    private final String label;

    IdFormat(String label) {
        this.label = label;
    }

    /**
     * Returns the format with this name, which is the same in every language. Use this for names from a configuration
     * file.
     *
     * @param name the format's name, such as {@code base62}
     * @return the format
     * @throws InvalidOptionException if no format has this name
     */
    public static IdFormat of(String name) {
        Objects.requireNonNull(name, "name");
        for (IdFormat format : values()) {
            if (format.label.equals(name)) {
                return format;
            }
        }
        write(0, name); // throws, because the library has the same formats
        throw new AssertionError(name);
    }

    /**
     * Writes an ID.
     *
     * @param id any ID, read as an unsigned number
     * @return the string
     */
    public String format(long id) {
        return this == DECIMAL ? Long.toUnsignedString(id) : write(id, label);
    }

    /**
     * Reads an ID that was written by {@link #format(long)} or another program.
     *
     * @param text the string
     * @return the ID
     * @throws InvalidIdException if the string has an invalid character, is a number with more than 64 bits, or is a
     *     UUID that does not encode an ID; the message gives the position
     */
    public long parse(String text) {
        Objects.requireNonNull(text, "text");
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment id = arena.allocate(JAVA_LONG);
            detail.check(Native.idRead(
                    Native.text(arena, text), Native.text(arena, label), id, detail.segment));
            return id.get(JAVA_LONG, 0);
        }
    }

    /**
     * Returns the name, the same in every language.
     *
     * @return the name, such as {@code base62}
     */
    @Override
    public String toString() {
        return label;
    }

    private static String write(long id, String format) {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment text = arena.allocate(Native.ID_TEXT_SIZE);
            detail.check(Native.idWrite(id, Native.text(arena, format), text, detail.segment));
            return text.getString(0);
        }
    }
}
