<?php

declare(strict_types=1);

namespace Polyflake\Exception;

use Throwable;

/**
 * Any refusal by Polyflake. getMessage() names the value and what would fit; getCode() is the error's permanent
 * number, the same in every language.
 *
 * @property-read string $name the error's permanent name, such as "invalid_layout"
 * @property-read int $behindMs by how many ms the clock stands behind the last ID, with clock_moved_backwards; else 0
 * @property-read int $retryAfterMs after how many ms of the clock the next ID can come, with clock_moved_backwards and
 *     sequence_exhausted; else 0
 */
interface PolyflakeException extends Throwable
{
}
