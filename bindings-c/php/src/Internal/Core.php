<?php

declare(strict_types=1);

namespace Polyflake\Internal;

use DateTimeImmutable;
use DateTimeInterface;
use DateTimeZone;
use FFI;
use FFI\CData;
use FFI\CType;
use Polyflake\Exception\InvalidIdException;
use Throwable;
use TypeError;

/**
 * PHP's values as the library's, and back. What they mean is for the library to decide.
 *
 * @internal
 */
final class Core
{
    private const NANOSECONDS_PER_MICROSECOND = 1000;
    private const ID_TEXT_SIZE = 21;

    /**
     * C types, parsed once: it is faster, and PHP 8.2 leaks those of pointers.
     *
     * @var array<string, CType>
     */
    private static array $types = [];

    /**
     * Room for values of a C type, as the array that FFI takes for a pointer. What is read out of it, an integer or a
     * pointer, is a copy; a struct is not, and FFI does not keep the room for it: keep it in a variable of its own.
     */
    public static function room(string $type, int $count = 1): CData
    {
        $type .= "[$count]";
        return Library::ffi()->new(self::$types[$type] ??= Library::ffi()->type($type));
    }

    /**
     * Room for a struct that begins with its size.
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
     * A text that C reads up to its NUL. One inside it must not cut it short, so it becomes a character that, as C's
     * bytes that are no UTF-8, no parser takes.
     */
    public static function text(string $text): string
    {
        return str_replace("\0", "\u{FFFD}", $text);
    }

    /**
     * An ID's 64 bits in PHP's int, whose sign they ignore.
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

    public static function write(int $bits, string $format, CData $detail): string
    {
        $text = self::room('char', self::ID_TEXT_SIZE);
        $status = Library::ffi()->polyflake_id_write($bits, self::text($format), $text, self::ID_TEXT_SIZE, $detail);
        self::check($status, $detail);
        return FFI::string($text);
    }

    /**
     * 64 bits as a number: an int where PHP's holds it, a decimal text for the rest.
     */
    public static function number(int $bits): int|string
    {
        return $bits >= 0 ? $bits : sprintf('%u', $bits);
    }

    /**
     * Why 64 bits are no int: those of an ID with its top bit set.
     */
    public static function tooLarge(int $bits, string $instead): Throwable
    {
        $code = array_search(InvalidIdException::class, Failure::CLASSES, true);
        $message = sprintf("invalid_id: %u is more than PHP's int holds (%d); %s", $bits, PHP_INT_MAX, $instead);
        return Failure::make($code, $message);
    }

    /**
     * A node as a text, or null for none.
     *
     * @param int|array<string, int>|string|null $node
     */
    public static function node(int|array|string|null $node): ?string
    {
        if (!is_array($node)) {
            return $node === null ? null : self::text((string) $node);
        }
        $parts = [];
        foreach (self::nodeFields($node) as $field => $value) {
            // A name must not bring fields of its own into the text.
            $parts[] = str_replace(['=', ','], "\u{FFFD}", (string) $field) . "=$value";
        }
        return $parts === [] ? null : implode(',', $parts);
    }

    /**
     * A node's fields as texts.
     *
     * @param array<mixed> $node
     * @return array<string>
     */
    public static function nodeFields(array $node): array
    {
        $fields = [];
        foreach ($node as $field => $value) {
            if (!is_int($value)) {
                $type = get_debug_type($value);
                throw new TypeError("node field '$field' must be of type int, $type given");
            }
            $fields[self::text((string) $field)] = (string) $value;
        }
        return $fields;
    }

    /**
     * An instant as Unix ms and the nanoseconds after them.
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
            throw Failure::make(6, 'time_out_of_range: ' . $time->format('c') . ' is past what 64-bit Unix ms hold');
        }
        return [$ms, $microseconds % 1000 * self::NANOSECONDS_PER_MICROSECOND];
    }

    /**
     * Unix ms, never negative, in UTC: PHP's years reach as far as 64 bits of ms.
     */
    public static function time(int $unixMs): DateTimeImmutable
    {
        return (new DateTimeImmutable('@' . intdiv($unixMs, 1000)))
            ->setTimezone(new DateTimeZone('UTC'))
            ->modify('+' . $unixMs % 1000 . ' ms');
    }
}
