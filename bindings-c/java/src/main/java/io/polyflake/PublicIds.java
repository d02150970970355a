package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.List;
import java.util.Objects;

/**
 * Turns IDs into texts for the outside, such as {@code order_15ShV20Bxc6UJvKSQbDvo0J}, and back. A text hides when and
 * where an ID was made, and needs no table. Any number of threads may use it.
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
        Native.CLEANER.register(this, () -> Native.publicIdsFree(address));
    }

    /**
     * Prepares public IDs. {@link #generateKey(int)} makes a key.
     *
     * @param keys one to 16 keys, separated by white space or commas: the first encodes, and each decodes
     * @param prefix words of a-z and 0-9 joined by {@code _}, at most 24 characters, or an empty text
     * @return the public IDs
     * @throws InvalidOptionException if a key or the prefix is invalid, or if two keys have the same number or the same
     *     bytes. The message shows nothing of a key
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
     * Prepares public IDs, as {@link #of(String, String)}.
     *
     * @param keys the first encodes, and each decodes
     * @param prefix words of a-z and 0-9 joined by {@code _}, at most 24 characters, or an empty text
     * @return the public IDs
     * @throws InvalidOptionException as {@link #of(String, String)}
     */
    public static PublicIds of(List<String> keys, String prefix) {
        return of(String.join("\n", Objects.requireNonNull(keys, "keys")), prefix);
    }

    /**
     * Makes a key of random bytes from the operating system. Keep it where you keep secrets.
     *
     * @param number by which texts name their key, from 0 to 61: give each key another
     * @return the key
     * @throws InvalidOptionException for another number
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
     * Returns the text of an ID.
     *
     * @param id any ID, as unsigned
     * @return the text
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
     * Returns the ID of a text. A text that was not encoded with this prefix and one of these keys decodes with a
     * chance of 1 in 2<sup>64</sup>.
     *
     * @param text the text
     * @return the ID, as unsigned
     * @throws InvalidIdException for any other text; the message says why
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
     * Returns the prefix of the texts.
     *
     * @return the prefix, which may be empty
     */
    public String prefix() {
        return prefix;
    }

    /** Returns the prefix, and nothing of the keys. */
    @Override
    public String toString() {
        return "PublicIds[prefix=" + prefix + "]";
    }
}
