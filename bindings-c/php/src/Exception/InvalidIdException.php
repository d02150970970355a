<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 5, invalid_id: an ID outside its layout, a text that is no ID, or an ID that PHP's int cannot hold.
 */
final class InvalidIdException extends \InvalidArgumentException implements PolyflakeException
{
    use Details;
}
