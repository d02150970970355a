<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 12, lease_unavailable: no node is free to be leased, or the store cannot be reached. The message says which.
 */
final class LeaseUnavailableException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
