<?php

declare(strict_types=1);

namespace Polyflake\Exception;

/**
 * Error 13, lease_lost: the lease ran out; nothing more is issued on it.
 */
final class LeaseLostException extends \RuntimeException implements PolyflakeException
{
    use Details;
}
