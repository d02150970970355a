<?php

declare(strict_types=1);

namespace Polyflake\Exception;

use Throwable;

/**
 * Any error from Polyflake. getMessage() says what is wrong and what would be valid; getCode() is the permanent number
 * of the error, the same in every language.
 *
 * @property-read string $name the permanent name of the error, such as "invalid_layout"
 * @property-read int $behindMs for clock_moved_backwards, how many ms the clock is behind the last ID, less maxAheadMs;
 *     or 0
 * @property-read int $retryAfterMs how many ms the clock must advance before the next ID, for clock_moved_backwards and
 *     sequence_exhausted; how many ms remain until the store is queried again, for lease_lost; otherwise 0
 */
interface PolyflakeException extends Throwable
{
}
