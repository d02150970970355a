<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 13, lease_lost: the lease has expired, and the store did not renew it within the time that the call may wait.
 * $retryAfterMs is how many ms remain until the store is queried again. The Snowflake recovers on its own.
 */
final class LeaseLostException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
