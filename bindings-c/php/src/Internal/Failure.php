<?php

declare(strict_types=1);

namespace Polyflake\Internal;

use FFI;
use FFI\CData;
use Polyflake\Exception\ClockFailedException;
use Polyflake\Exception\ClockMovedBackwardsException;
use Polyflake\Exception\ClosedException;
use Polyflake\Exception\ForkedException;
use Polyflake\Exception\InternalException;
use Polyflake\Exception\InvalidIdException;
use Polyflake\Exception\InvalidLayoutException;
use Polyflake\Exception\InvalidNodeException;
use Polyflake\Exception\InvalidOptionException;
use Polyflake\Exception\LeaseLostException;
use Polyflake\Exception\LeaseUnavailableException;
use Polyflake\Exception\PolyflakeException;
use Polyflake\Exception\SequenceExhaustedException;
use Polyflake\Exception\StateFileException;
use Polyflake\Exception\TimeOutOfRangeException;
use Polyflake\Exception\UnknownLayoutException;
use Throwable;

/**
 * What the library refuses, as exceptions.
 *
 * @internal
 */
final class Failure
{
    /** The exceptions, by the errors' permanent numbers. */
    public const CLASSES = [
        1 => InvalidLayoutException::class,
        2 => UnknownLayoutException::class,
        3 => InvalidNodeException::class,
        4 => InvalidOptionException::class,
        5 => InvalidIdException::class,
        6 => TimeOutOfRangeException::class,
        7 => ClockMovedBackwardsException::class,
        8 => SequenceExhaustedException::class,
        9 => ForkedException::class,
        10 => ClockFailedException::class,
        11 => StateFileException::class,
        12 => LeaseUnavailableException::class,
        13 => LeaseLostException::class,
        14 => ClosedException::class,
        99 => InternalException::class,
    ];

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
     * For the few refusals that are PHP's own.
     */
    public static function make(
        int $status,
        string $message,
        int $behindMs = 0,
        int $retryAfterMs = 0,
        ?Throwable $previous = null,
    ): PolyflakeException {
        $class = self::CLASSES[$status] ?? InternalException::class;
        $name = Library::ffi()->polyflake_status_name($status);
        return new $class($message, $status, $name, $behindMs, $retryAfterMs, $previous);
    }
}
