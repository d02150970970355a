<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 15, counter_unavailable: a counter gives no number. Its store gave none in the time that the call may wait or
 * refuses to, the counter was removed, or it has reached its end.
 */
final class CounterUnavailableException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
