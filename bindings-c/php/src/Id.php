<?php

declare(strict_types=1);

namespace Polyflake;

use Polyflake\Internal\Core;

/**
 * IDs as texts, in one of the formats "decimal", "hex", "base32" (Crockford, 13 digits), "base36", "base58" (Bitcoin's
 * alphabet) and "base62" (11 digits). base32 and base62 sort as the IDs do.
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
     * @param int|string $id an int, or a decimal string, which may be as large as 2^64 - 1
     * @throws Exception\InvalidIdException for what is no ID
     * @throws Exception\InvalidOptionException for another format
     */
    public static function format(int|string $id, string $format = 'decimal'): string
    {
        return Core::write(Core::bits($id), $format, Core::detail());
    }

    /**
     * Reads an ID that format() or another program wrote; hex, base32 and base36 in both cases.
     *
     * @return int|string an int, or a decimal string where the ID's top bit is set
     * @throws Exception\InvalidIdException for a foreign character or a number over 64 bits, naming the position
     * @throws Exception\InvalidOptionException for another format
     */
    public static function parse(string $text, string $format = 'decimal'): int|string
    {
        return Core::number(Core::read($text, $format));
    }
}
