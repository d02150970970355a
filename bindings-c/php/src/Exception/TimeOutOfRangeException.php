<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 6, time_out_of_range: the time is before the epoch or past the layout's end.
 */
final class TimeOutOfRangeException extends \RangeException implements PolyflakeException
{
    use Details;
}
