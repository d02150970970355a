<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 1, invalid_layout: a layout that cannot work.
 */
final class InvalidLayoutException extends \InvalidArgumentException implements PolyflakeException
{
    use Details;
}
