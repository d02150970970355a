<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 10, clock_failed: the caller's clock threw, or returned no int: see getPrevious().
 */
final class ClockFailedException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
