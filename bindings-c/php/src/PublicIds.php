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
 * Turns IDs into texts for outsiders, and back. A text hides when and where an ID was issued, and needs no table.
 *
 *     $orders = new PublicIds($keys, 'order');
 *     $orders->encode(1541815603606036480);             // 'order_15ShV20Bxc6UJvKSQbDvo0J'
 *     $orders->decode('order_15ShV20Bxc6UJvKSQbDvo0J'); // 1541815603606036480
 *
 * Create it once in a request. var_dump() shows no part of the keys.
 */
final class PublicIds
{
    /** The prefix of the texts. */
    public readonly string $prefix;
    /** Null once it is freed: at the end of a request, PHP destroys objects that others still use. */
    private ?CData $pointer = null;
    /**
     * The library writes a text and an ID here. They are kept, so that the next call need not allocate them. A call
     * takes them out and puts them back, since a signal handler may make another call before this one
     * has read the result.
     */
    private ?CData $text = null;
    private ?CData $bits = null;

    /**
     * Prepares public IDs.
     *
     * @param string|list<string> $keys the first encodes, and each one decodes. A string may contain several,
     *     separated by white space or commas. generateKey() and `polyflake public key` generate keys
     * @param string $prefix the prefix of the texts: words of a-z and 0-9 joined by _, at most 24 characters, or ''
     * @throws Exception\InvalidOptionException if a key or the prefix is invalid, if two keys have the same number or
     *     the same bytes, and if there is no key, or more than 16; the message shows no part of a key
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
     * The text of an ID.
     *
     * @param int|string $id an int, or a decimal string of up to 2^64 - 1
     * @throws Exception\InvalidIdException if $id is not an ID
     */
    public function encode(int|string $id): string
    {
        $bits = is_int($id) && $id >= 0 ? $id : Core::bits($id);
        $ffi = Library::ffi();
        $size = $ffi->POLYFLAKE_PUBLIC_ID_SIZE;
        // PHP runs signal handlers at calls and jumps, so not between these two lines.
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
     * The texts of IDs, such as those on a page of rows, under the array's keys.
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
     * The ID of a text. A text that was not encoded with this prefix and one of these keys decodes with a chance of 1
     * in 2^64.
     *
     * @return int|string an int, or a decimal string if the ID's top bit is set
     * @throws Exception\InvalidIdException for any other text; the message has the reason
     */
    public function decode(#[SensitiveParameter] string $text): int|string
    {
        $text = Core::text($text);
        $ffi = Library::ffi();
        // As in encode().
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
     * The IDs of texts, under the array's keys.
     *
     * @template TKey of array-key
     * @param array<TKey, string> $texts
     * @return array<TKey, int|string>
     * @throws Exception\InvalidIdException if one of them is not the text of an ID; the message has the reason
     */
    public function decodeAll(array $texts): array
    {
        return array_map($this->decode(...), $texts);
    }

    /**
     * Generates a key from the operating system's random bytes. Keep it where you keep secrets.
     *
     * @param int $number the key's number, from 0 to 61. Texts contain it, so give each key a different one
     * @throws Exception\InvalidOptionException for any other number
     * @throws LibraryException if libpolyflake cannot be used
     */
    public static function generateKey(int $number = 0): string
    {
        $ffi = Library::ffi();
        $size = $ffi->POLYFLAKE_PUBLIC_KEY_SIZE;
        $text = Core::room('char', $size);
        $detail = Core::detail();
        // C's unsigned int would cut other numbers.
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
        // So that the destructor of the clone does not free the original's pointer.
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
