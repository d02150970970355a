<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 5, invalid_id: the ID does not fit the layout or PHP's int, or the string is not an ID.
 */
final class InvalidIdException extends \InvalidArgumentException implements PolyflakeException
{
    use Details;
}
