<?php

declare(strict_types=1);

namespace Polyflake\Exception;

use Throwable;

/**
 * What every PolyflakeException carries.
 *
 * @internal
 */
trait Details
{
    /** @internal */
    public function __construct(
        string $message,
        int $code,
        public readonly string $name,
        public readonly int $behindMs,
        public readonly int $retryAfterMs,
        ?Throwable $previous,
    ) {
        parent::__construct($message, $code, $previous);
    }
}
