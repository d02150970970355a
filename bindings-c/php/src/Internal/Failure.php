<?php

declare(strict_types=1);

namespace Polyflake\Internal;

use FFI;
use FFI\CData;
use Polyflake\Exception\InternalException;
use Polyflake\Exception\PolyflakeException;
use Throwable;

/**
 * Turns the library's errors into exceptions.
 *
 * @internal
 */
final class Failure
{
    public static function of(int $status, CData $detail, ?Throwable $previous = null): PolyflakeException
    {
        return self::make(
            $status,
            FFI::string($detail[0]->message),
            $detail[0]->behind_ms,
            $detail[0]->retry_after_ms,
            $previous,
        );
    }

    /**
     * Returns an exception with the library's general message for a status, for errors that are detected in PHP.
     */
    public static function inWords(int $status, string $value = ''): PolyflakeException
    {
        $words = array_filter([
            Library::ffi()->polyflake_status_name($status),
            Library::ffi()->polyflake_status_message($status),
            $value,
        ]);
        return self::make($status, implode(': ', $words), 0, 0, null);
    }

    /**
     * Returns the exception class for an error's name.
     *
     * @return class-string<PolyflakeException>
     */
    public static function class(string $name): string
    {
        $class = 'Polyflake\Exception\\' . str_replace('_', '', ucwords($name, '_')) . 'Exception';
        return is_subclass_of($class, PolyflakeException::class) ? $class : InternalException::class;
    }

    private static function make(
        int $status,
        string $message,
        int $behindMs,
        int $retryAfterMs,
        ?Throwable $previous,
    ): PolyflakeException {
        $name = Library::ffi()->polyflake_status_name($status);
        $class = self::class($name);
        return new $class($message, $status, $name, $behindMs, $retryAfterMs, $previous);
    }
}
