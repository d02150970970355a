<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 14, closed: the Snowflake or the Counter is closed.
 */
final class ClosedException extends \LogicException implements PolyflakeException
{
    use Details;
}
