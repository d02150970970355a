package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.List;
import java.util.Objects;

/**
 * Turns IDs into strings that can be shown in public, such as {@code order_15ShV20Bxc6UJvKSQbDvo0J}, and back. Such a
 * string hides when and where its ID was issued, and decoding it needs no table. Any number of threads may use the same
 * converter.
 *
 * <pre>{@code
 * PublicIds orders = PublicIds.of(System.getenv("PUBLIC_ID_KEYS"), "order");
 * String text = orders.encode(id);
 * long id = orders.decode(text);
 * }</pre>
 */
public final class PublicIds {
    private final long address;
    private final String prefix;

    private PublicIds(long address, String prefix) {
        this.address = address;
        this.prefix = prefix;
        Native.publicIdsFreeAfter(this, address);
    }

    /**
     * Returns a converter for these keys and this prefix. Call {@link #generateKey(int)} to make a key.
     *
     * @param keys 1 to 16 keys, separated by white space or commas: the first is used for encoding, and all of them for
     *     decoding
     * @param prefix words made of the characters a-z and 0-9, joined by {@code _}, at most 24 characters in total; may
     *     be empty
     * @return the converter
     * @throws InvalidOptionException if a key or the prefix is invalid, or if two keys have the same number or the same
     *     bytes. The message does not show the keys
     */
    public static PublicIds of(String keys, String prefix) {
        Objects.requireNonNull(keys, "keys");
        Objects.requireNonNull(prefix, "prefix");
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment ids = arena.allocate(JAVA_LONG);
            MemorySegment text = Native.text(arena, keys);
            try {
                detail.check(Native.publicIdsNew(text, Native.text(arena, prefix), ids, detail.segment));
            } finally {
                text.fill((byte) 0);
            }
            return new PublicIds(ids.get(JAVA_LONG, 0), prefix);
        }
    }

    /**
     * Returns a converter, like {@link #of(String, String)}.
     *
     * @param keys 1 to 16 keys: the first is used for encoding, and all of them for decoding
     * @param prefix words made of the characters a-z and 0-9, joined by {@code _}, at most 24 characters in total; may
     *     be empty
     * @return the converter
     * @throws InvalidOptionException for the same reasons as {@link #of(String, String)}
     */
    public static PublicIds of(List<String> keys, String prefix) {
        return of(String.join("\n", Objects.requireNonNull(keys, "keys")), prefix);
    }

    /**
     * Makes a key from the operating system's random bytes. Store it as you store other secrets.
     *
     * @param number the key's number, 0 to 61, which every encoded string contains; give each key a different number
     * @return the key
     * @throws InvalidOptionException if the number is out of range
     */
    public static String generateKey(int number) {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment text = arena.allocate(Native.PUBLIC_KEY_SIZE);
            detail.check(Native.publicKeyGenerate(number, text, detail.segment));
            String key = text.getString(0);
            text.fill((byte) 0);
            return key;
        }
    }

    /**
     * Encodes an ID.
     *
     * @param id any ID, read as an unsigned number
     * @return the string
     */
    public String encode(long id) {
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment text = arena.allocate(Native.PUBLIC_ID_SIZE);
            detail.check(Native.publicIdsEncode(address, id, text, detail.segment));
            return text.getString(0);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the ID that a string encodes. A string that was not encoded with this prefix and one of these keys has a
     * 1 in 2<sup>64</sup> chance of decoding anyway.
     *
     * @param text the string
     * @return the ID, as an unsigned number
     * @throws InvalidIdException if the string is invalid; the message says why
     */
    public long decode(String text) {
        Objects.requireNonNull(text, "text");
        try (Arena arena = Arena.ofConfined()) {
            Detail detail = new Detail(arena);
            MemorySegment id = arena.allocate(JAVA_LONG);
            detail.check(Native.publicIdsDecode(address, Native.text(arena, text), id, detail.segment));
            return id.get(JAVA_LONG, 0);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the prefix of the encoded strings.
     *
     * @return the prefix, which may be empty
     */
    public String prefix() {
        return prefix;
    }

    /** Returns the prefix without the keys. */
    @Override
    public String toString() {
        return "PublicIds[prefix=" + prefix + "]";
    }
}
