<?php

declare(strict_types=1);

namespace Polyflake\Exception;

use Throwable;

/**
 * The properties of every PolyflakeException.
 *
 * @internal
 */
trait Details
{
    /** @internal */
    public function __construct(
        string $message,
        int $code,
        /** The error's name, such as "sequence_exhausted"; getCode() is its number. */
        public readonly string $name,
        /** For ClockMovedBackwardsException, how many ms the clock is behind the last ID, less maxAheadMs; or 0. */
        public readonly int $behindMs,
        /**
         * How many ms the clock must advance before the next ID, for ClockMovedBackwardsException and
         * SequenceExhaustedException; how many ms remain until the store is queried again, for LeaseLostException;
         * otherwise 0.
         */
        public readonly int $retryAfterMs,
        ?Throwable $previous,
    ) {
        parent::__construct($message, $code, $previous);
    }
}
