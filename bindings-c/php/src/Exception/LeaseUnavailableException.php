<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 12, lease_unavailable: no worker is free, or the store cannot be reached.
 */
final class LeaseUnavailableException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
