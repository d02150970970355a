<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 10, clock_failed: the custom clock threw an exception or did not return an int. See getPrevious().
 */
final class ClockFailedException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
