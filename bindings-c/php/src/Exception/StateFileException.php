<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 11, state_file: the state file cannot be used, or belongs to another layout or node.
 */
final class StateFileException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
