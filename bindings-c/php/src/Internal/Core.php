<?php

declare(strict_types=1);

namespace Polyflake\Internal;

use DateTimeImmutable;
use DateTimeInterface;
use DateTimeZone;
use FFI;
use FFI\CData;
use FFI\CType;
use Throwable;
use TypeError;

/**
 * Converts between PHP values and library values. The library decides what they mean.
 *
 * @internal
 */
final class Core
{
    private const NANOSECONDS_PER_MICROSECOND = 1000;

    /**
     * C types by element type and length. Each type is parsed only once: that is faster, and PHP 8.2 leaks pointer
     * types.
     *
     * @var array<string, array<int, CType>>
     */
    private static array $types = [];

    /** The start of Unix time. Deriving other times from it needs no parsing. */
    private static ?DateTimeImmutable $start = null;

    /**
     * Allocates values of a C type, as an array, which FFI passes as a pointer. An integer or a pointer that is read
     * from the array is a copy. A struct is not a copy, and does not keep the array alive: keep the array in a
     * variable.
     */
    public static function room(string $type, int $count = 1): CData
    {
        $ffi = Library::ffi();
        return $ffi->new(self::$types[$type][$count] ??= $ffi->type("{$type}[$count]"));
    }

    /**
     * Allocates a struct that begins with its size.
     */
    public static function struct(string $type): CData
    {
        $struct = self::room($type);
        $struct[0]->size = FFI::sizeof($struct[0]);
        return $struct;
    }

    public static function detail(): CData
    {
        return self::struct('polyflake_detail');
    }

    public static function check(int $status, CData $detail, ?Throwable $previous = null): void
    {
        if ($status !== 0) {
            throw Failure::of($status, $detail, $previous);
        }
    }

    /**
     * Returns a string for C, which reads up to the first NUL. A NUL inside would hide the rest of the string, so it is
     * replaced by the symbol for NUL, which all of the library's parsers reject.
     */
    public static function text(string $text): string
    {
        return str_replace("\0", '␀', $text);
    }

    /**
     * Sets an option. The value's length is passed to C, because the value may contain a NUL.
     */
    public static function set(CData $options, string $name, string $value, CData $detail): void
    {
        $status = Library::ffi()->polyflake_options_set_bytes($options, $name, $value, strlen($value), $detail);
        self::check($status, $detail);
    }

    /**
     * Sets the node, as a whole or by its fields. Null and an empty array leave it unset.
     *
     * The type allows a bool only to reject it. Otherwise, without strict types, PHP would convert false, which
     * getenv() returns for a missing variable, to node 0.
     *
     * @param int|array<mixed>|string|bool|null $node
     */
    public static function setNode(CData $options, int|array|string|bool|null $node, CData $detail): void
    {
        if (!is_array($node)) {
            if ($node !== null) {
                self::set($options, 'node', self::numberText('node', $node), $detail);
            }
            return;
        }
        foreach ($node as $field => $value) {
            $value = self::numberText("node field '$field'", $value);
            $field = self::text((string) $field);
            $status = Library::ffi()->polyflake_options_set_node_field($options, $field, $value, $detail);
            self::check($status, $detail);
        }
    }

    private static function numberText(string $what, mixed $value): string
    {
        if (is_int($value) || is_string($value)) {
            return (string) $value;
        }
        $why = $value === false ? ': getenv() returns false for a variable that is not set' : '';
        throw new TypeError("$what must be of type int or string, " . get_debug_type($value) . " given$why");
    }

    /**
     * Returns the 64 bits of an ID as a PHP int, which may be negative.
     */
    public static function bits(int|string $id): int
    {
        return self::read((string) $id, 'decimal');
    }

    public static function read(string $text, string $format): int
    {
        $bits = self::room('uint64_t');
        $detail = self::detail();
        self::check(
            Library::ffi()->polyflake_id_read(self::text($text), self::text($format), $bits, $detail),
            $detail,
        );
        return $bits[0];
    }

    public static function write(int $bits, string $format): string
    {
        $ffi = Library::ffi();
        $size = $ffi->POLYFLAKE_ID_TEXT_SIZE;
        $text = self::room('char', $size);
        $format = self::text($format);
        if ($ffi->polyflake_id_write($bits, $format, $text, $size, null) !== 0) {
            $detail = self::detail();
            self::check($ffi->polyflake_id_write($bits, $format, $text, $size, $detail), $detail);
        }
        return FFI::string($text);
    }

    /**
     * Returns 64 bits as a number: an int if the number fits, otherwise a decimal string.
     */
    public static function number(int $bits): int|string
    {
        return $bits >= 0 ? $bits : sprintf('%u', $bits);
    }

    /**
     * Returns the exception for an ID with its top bit set, which does not fit a PHP int.
     */
    public static function tooLarge(int $bits, CData $detail): Throwable
    {
        $status = Library::ffi()->polyflake_id_signed($bits, self::room('int64_t'), $detail);
        return Failure::of($status, $detail);
    }

    /**
     * Converts a time to Unix ms and the remaining nanoseconds.
     *
     * @return array{int, int}
     */
    public static function instant(DateTimeInterface|int $time): array
    {
        if (is_int($time)) {
            return [$time, 0];
        }
        $microseconds = (int) $time->format('u');
        $ms = $time->getTimestamp() * 1000 + intdiv($microseconds, 1000);
        if (!is_int($ms)) {
            throw Failure::inWords(Library::ffi()->POLYFLAKE_TIME_OUT_OF_RANGE, $time->format('c'));
        }
        return [$ms, $microseconds % 1000 * self::NANOSECONDS_PER_MICROSECOND];
    }

    /**
     * Converts Unix ms, which are never negative, to a time in UTC. PHP's range of years covers 64 bits of ms.
     */
    public static function time(int $unixMs): DateTimeImmutable
    {
        self::$start ??= new DateTimeImmutable('1970-01-01', new DateTimeZone('UTC'));
        return self::$start->setTime(0, 0, intdiv($unixMs, 1000), $unixMs % 1000 * 1000);
    }
}
