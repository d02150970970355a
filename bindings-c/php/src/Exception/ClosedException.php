<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 14, closed: used after it was closed.
 */
final class ClosedException extends \LogicException implements PolyflakeException
{
    use Details;
}
