<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 7, clock_moved_backwards: the clock stands further back than maxBackwardMs allows: see $behindMs and
 * $retryAfterMs.
 */
final class ClockMovedBackwardsException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
