<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * Statistics for monitoring, since the Snowflake's cursor was created. They are updated only on slow paths.
 */
final class Stats
{
    /**
     * @internal
     */
    public function __construct(
        /** How many times a call found no free slot and waited or failed. */
        public readonly int $waits,
        /** How many times the clock was seen to step back, whether or not this was tolerated. */
        public readonly int $rollbacks,
        /** How many ms the last tick used is ahead of the clock; 0 if it is not ahead. */
        public readonly int $leadMs,
        /** The start of the last ID's tick, in Unix ms; null before the first ID. */
        public readonly ?int $lastIssuedMs,
        /** How many times the lease was lost because it expired or another process had its node; 0 without a lease. */
        public readonly int $leaseLosses,
    ) {
    }
}
