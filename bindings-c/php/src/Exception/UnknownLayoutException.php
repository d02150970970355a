<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 2, unknown_layout: no preset has this name.
 */
final class UnknownLayoutException extends \InvalidArgumentException implements PolyflakeException
{
    use Details;
}
