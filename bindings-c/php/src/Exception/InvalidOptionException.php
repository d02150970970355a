<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 4, invalid_option: any other option's value.
 */
final class InvalidOptionException extends \InvalidArgumentException implements PolyflakeException
{
    use Details;
}
