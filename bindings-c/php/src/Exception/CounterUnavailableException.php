<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 15, counter_unavailable: a counter has no number. The store refuses or handed out none in the time that the
 * call may wait, or the counter was removed or has reached its end.
 */
final class CounterUnavailableException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
