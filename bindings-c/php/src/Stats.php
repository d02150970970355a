<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * Statistics for monitoring, since the Snowflake's cursor was created. They are counted only on slow paths.
 */
final class Stats
{
    /**
     * @internal
     */
    public function __construct(
        /** How often a call found no free slot and waited or failed. */
        public readonly int $waits,
        /** How often the clock was seen to step backward, tolerated or not. */
        public readonly int $rollbacks,
        /** How many ms the last tick used is ahead of the clock; 0 if it is not ahead. */
        public readonly int $leadMs,
        /** The start of the last ID's tick, in Unix ms; null before the first ID. */
        public readonly ?int $lastIssuedMs,
        /** How often the lease was lost because it expired or another process had its node; 0 without a lease. */
        public readonly int $leaseLosses,
    ) {
    }
}
