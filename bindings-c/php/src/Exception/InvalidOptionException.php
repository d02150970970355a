<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 4, invalid_option: the value of any other option is invalid.
 */
final class InvalidOptionException extends \InvalidArgumentException implements PolyflakeException
{
    use Details;
}
