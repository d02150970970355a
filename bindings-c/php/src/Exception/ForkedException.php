<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 9, forked: used in a child of the process that made it.
 */
final class ForkedException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
