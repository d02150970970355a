<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 4, invalid_option: an option other than the layout or the node is invalid.
 */
final class InvalidOptionException extends \InvalidArgumentException implements PolyflakeException
{
    use Details;
}
