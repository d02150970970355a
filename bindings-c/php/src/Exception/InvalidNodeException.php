<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 3, invalid_node: a node field is missing, unknown or out of range.
 */
final class InvalidNodeException extends \InvalidArgumentException implements PolyflakeException
{
    use Details;
}
