<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 7, clock_moved_backwards: the clock has stepped back by more than maxBackwardMs. See $behindMs and
 * $retryAfterMs.
 */
final class ClockMovedBackwardsException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
