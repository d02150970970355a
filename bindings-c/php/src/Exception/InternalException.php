<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 99, internal: a bug in Polyflake. Please report it.
 */
final class InternalException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
