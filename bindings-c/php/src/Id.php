<?php

declare(strict_types=1);

namespace Polyflake;

use Polyflake\Internal\Core;

/**
 * IDs as text, in the formats "decimal", "hex", "base32" (Crockford, 13 digits), "base36", "base58" (Bitcoin alphabet),
 * "base62" (11 digits), "uuid" (a version 8 UUID, for columns of that type), "bwmarrin-base32" and "bwmarrin-base58"
 * (the alphabets of the Go package bwmarrin/snowflake). In base32, base62 and uuid, the strings sort in the order of
 * the IDs.
 *
 *     Id::format(1541815603606036480, 'base62'); // '1ptWyK4WgZU'
 *     Id::parse('1ptWyK4WgZU', 'base62');        // 1541815603606036480
 */
final class Id
{
    private function __construct()
    {
    }

    /**
     * Writes an ID as text.
     *
     * @param int|string $id an int, or a decimal string of up to 2^64 - 1
     * @throws Exception\InvalidIdException if $id is not an ID
     * @throws Exception\InvalidOptionException if the format is unknown
     * @throws LibraryException if libpolyflake cannot be used
     */
    public static function format(int|string $id, string $format = 'decimal'): string
    {
        return Core::write(Core::bits($id), $format);
    }

    /**
     * Reads an ID from text, as written by format() or by other programs. Hex, base32, base36 and uuid are read in
     * upper and lower case.
     *
     * @return int|string an int, or a decimal string if the ID's top bit is set
     * @throws Exception\InvalidIdException for an invalid character, a number with more than 64 bits, or a UUID that
     *     does not represent an ID; the message gives the position
     * @throws Exception\InvalidOptionException if the format is unknown
     * @throws LibraryException if libpolyflake cannot be used
     */
    public static function parse(string $text, string $format = 'decimal'): int|string
    {
        return Core::number(Core::read($text, $format));
    }
}
