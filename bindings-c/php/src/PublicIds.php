<?php

declare(strict_types=1);

namespace Polyflake;

use FFI;
use FFI\CData;
use LogicException;
use Polyflake\Internal\Core;
use Polyflake\Internal\Library;
use SensitiveParameter;

/**
 * Converts IDs to public IDs and back. A public ID is a string that hides when and where the ID was issued. No table is
 * needed to decode it.
 *
 *     $orders = new PublicIds($keys, 'order');
 *     $orders->encode(1541815603606036480);             // 'order_15ShV20Bxc6UJvKSQbDvo0J'
 *     $orders->decode('order_15ShV20Bxc6UJvKSQbDvo0J'); // 1541815603606036480
 *
 * Create one per request. var_dump() shows no part of the keys.
 */
final class PublicIds
{
    /** The prefix of the public IDs. */
    public readonly string $prefix;
    /** Null once the object is freed: at the end of a request, PHP destroys objects that other objects still use. */
    private ?CData $pointer = null;
    /**
     * The library writes a string and an ID here. They are kept so that the next call need not allocate them. A call
     * takes them out and puts them back, because a signal handler may make another call before this one has read the
     * result.
     */
    private ?CData $text = null;
    private ?CData $bits = null;

    /**
     * Prepares public IDs.
     *
     * @param string|list<string> $keys the first key is used for encoding, and all of them for decoding. A string may
     *     contain several keys, separated by white space or commas. generateKey() and `polyflake public key` generate
     *     keys
     * @param string $prefix the prefix of the public IDs: '', or words made of the characters a-z and 0-9, joined by _,
     *     at most 24 characters in total
     * @throws Exception\InvalidOptionException if a key or the prefix is invalid, if two keys have the same number or
     *     the same bytes, if no key is given, or if more than 16 are; the message shows no part of a key
     * @throws LibraryException if libpolyflake cannot be used
     */
    public function __construct(#[SensitiveParameter] string|array $keys, #[SensitiveParameter] string $prefix)
    {
        $ffi = Library::ffi();
        $joined = self::joined(...array_values((array) $keys));
        $room = Core::room('polyflake_public_ids *');
        $detail = Core::detail();
        $status = $ffi->polyflake_public_ids_new(Core::text($joined), Core::text($prefix), $room, $detail);
        Core::check($status, $detail);
        $this->prefix = $prefix;
        $this->pointer = $room[0];
    }

    private static function joined(#[SensitiveParameter] string ...$keys): string
    {
        return implode("\n", $keys);
    }

    /**
     * Returns the public ID for an ID.
     *
     * @param int|string $id an int, or a decimal string of up to 2^64 - 1
     * @throws Exception\InvalidIdException if $id is not an ID
     */
    public function encode(int|string $id): string
    {
        $bits = is_int($id) && $id >= 0 ? $id : Core::bits($id);
        $ffi = Library::ffi();
        $size = $ffi->POLYFLAKE_PUBLIC_ID_SIZE;
        // PHP runs signal handlers only at calls and jumps, so none runs between these two lines.
        $room = $this->text;
        $this->text = null;
        $room ??= Core::room('char', $size);
        if ($ffi->polyflake_public_ids_encode($this->pointer, $bits, $room, $size, null) !== 0) {
            $detail = Core::detail();
            Core::check($ffi->polyflake_public_ids_encode($this->pointer, $bits, $room, $size, $detail), $detail);
        }
        $text = FFI::string($room);
        $this->text = $room;
        return $text;
    }

    /**
     * Encodes several IDs, such as those in a page of rows. The array keys are kept.
     *
     * @template TKey of array-key
     * @param array<TKey, int|string> $ids
     * @return array<TKey, string>
     * @throws Exception\InvalidIdException if one of them is not an ID
     */
    public function encodeAll(array $ids): array
    {
        return array_map($this->encode(...), $ids);
    }

    /**
     * Returns the ID from a public ID. A string that was not encoded with this prefix and one of these keys has a 1 in
     * 2^64 chance of decoding anyway.
     *
     * @return int|string an int, or a decimal string if the ID's top bit is set
     * @throws Exception\InvalidIdException for any other string; the message gives the reason
     */
    public function decode(#[SensitiveParameter] string $text): int|string
    {
        $text = Core::text($text);
        $ffi = Library::ffi();
        // No signal handler runs between these two lines, as in encode().
        $room = $this->bits;
        $this->bits = null;
        $room ??= Core::room('uint64_t');
        if ($ffi->polyflake_public_ids_decode($this->pointer, $text, $room, null) !== 0) {
            $detail = Core::detail();
            Core::check($ffi->polyflake_public_ids_decode($this->pointer, $text, $room, $detail), $detail);
        }
        $bits = $room[0];
        $this->bits = $room;
        return Core::number($bits);
    }

    /**
     * Decodes several public IDs. The array keys are kept.
     *
     * @template TKey of array-key
     * @param array<TKey, string> $texts
     * @return array<TKey, int|string>
     * @throws Exception\InvalidIdException if one of them is not a public ID; the message gives the reason
     */
    public function decodeAll(array $texts): array
    {
        return array_map($this->decode(...), $texts);
    }

    /**
     * Generates a key from the operating system's random bytes. Store the key as you store other secrets.
     *
     * @param int $number the key's number, from 0 to 61. Public IDs contain the number of their key, so give each key a
     *     different one
     * @throws Exception\InvalidOptionException for any other number
     * @throws LibraryException if libpolyflake cannot be used
     */
    public static function generateKey(int $number = 0): string
    {
        $ffi = Library::ffi();
        $size = $ffi->POLYFLAKE_PUBLIC_KEY_SIZE;
        $text = Core::room('char', $size);
        $detail = Core::detail();
        // C's unsigned int would truncate other numbers.
        $number = $number < 0 ? -1 : min($number, 1 << 31);
        Core::check($ffi->polyflake_public_key_generate($number, $text, $size, $detail), $detail);
        return FFI::string($text);
    }

    public function __destruct()
    {
        if ($this->pointer !== null) {
            Library::ffi()->polyflake_public_ids_free($this->pointer);
            $this->pointer = null;
        }
    }

    public function __clone()
    {
        // Otherwise, the clone's destructor would free the original's pointer.
        $this->pointer = null;
        throw new LogicException('a PublicIds cannot be cloned: use the same one, or create another');
    }

    /**
     * @return array{prefix: string}
     */
    public function __debugInfo(): array
    {
        return ['prefix' => $this->prefix];
    }

    /**
     * @return array<never>
     */
    public function __serialize(): array
    {
        throw new LogicException('a PublicIds cannot be serialized, since it has keys: create one in each process');
    }

    /**
     * @param array<mixed> $data
     */
    public function __unserialize(array $data): void
    {
        throw new LogicException('a PublicIds cannot be unserialized');
    }
}
