<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 15, counter_unavailable: a counter has no number left. Its store gave none in the time that the call may wait,
 * or the counter has reached its end.
 */
final class CounterUnavailableException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
