<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 9, forked: the Snowflake was created by a parent process.
 */
final class ForkedException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
