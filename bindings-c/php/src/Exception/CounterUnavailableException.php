<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 15, counter_unavailable: a counter has no number left. The store refuses to hand out numbers or handed out none
 * within the time that the call may wait, or the counter was removed or has reached its end.
 */
final class CounterUnavailableException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
