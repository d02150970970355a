<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 1, invalid_layout: the layout is invalid.
 */
final class InvalidLayoutException extends \InvalidArgumentException implements PolyflakeException
{
    use Details;
}
