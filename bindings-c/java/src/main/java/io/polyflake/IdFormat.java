package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * How an ID is written as text. Texts in {@link #BASE32}, {@link #BASE62} and {@link #UUID} sort in the order of the
 * IDs.
 *
 * <pre>{@code
 * String text = IdFormat.BASE62.format(id);
 * long id = IdFormat.BASE62.parse(text);
 * }</pre>
 *
 * <p>An ID is an unsigned number of 64 bits: one with its top bit set, which only layouts of 64 bits have, is negative
 * as a {@code long}. {@link #DECIMAL} writes it as {@link Long#toUnsignedString(long)} does.
 */
public enum IdFormat {
    /** A decimal number. */
    DECIMAL("decimal"),
    /** Written in lower case, and read in either case. */
    HEX("hex"),
    /** Crockford's, with 13 digits. Also reads lower case, I and L as 1, and O as 0. */
    BASE32("base32"),
    /** Written in lower case, and read in either case. */
    BASE36("base36"),
    /** Bitcoin's alphabet. */
    BASE58("base58"),
    /** 0-9A-Za-z, with 11 digits. */
    BASE62("base62"),
    /** A UUID of version 8, for columns of that type. Written in lower case, and read in either case. */
    UUID("uuid"),
    /** The base 32 of the Go package bwmarrin/snowflake. */
    BWMARRIN_BASE32("bwmarrin-base32"),
    /**
     * The base 58 of the Go package bwmarrin/snowflake. {@link #BASE58} reads such a text as another ID, without an
     * error.
     */
    BWMARRIN_BASE58("bwmarrin-base58");

    private final String label;

    IdFormat(String label) {
        this.label = label;
    }

    /**
     * Returns the format of a name, as it has in every language, for names from a configuration.
     *
     * @param name such as {@code base62}
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
        write(0, name); // throws: the library knows the same formats
        throw new AssertionError(name);
    }

    /**
     * Writes an ID.
     *
     * @param id any ID, as unsigned
     * @return the text
     */
    public String format(long id) {
        return this == DECIMAL ? Long.toUnsignedString(id) : write(id, label);
    }

    /**
     * Reads an ID, as {@link #format(long)} or another program has written it.
     *
     * @param text the text
     * @return the ID
     * @throws InvalidIdException for an invalid character, a number of more than 64 bits, or a UUID that no ID is
     *     written as; the message names the position
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
     * @return such as {@code base62}
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
