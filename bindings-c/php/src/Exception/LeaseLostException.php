<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 13, lease_lost: the lease has expired; no more IDs are issued on it.
 */
final class LeaseLostException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
