<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 99, internal: a bug in Polyflake: please report it.
 */
final class InternalException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
