<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * What an operator may want to graph, counted since the Snowflake's cursor was made, on slow paths only.
 */
final class Stats
{
    /**
     * @internal
     */
    public function __construct(
        /** How often a call found no free slot and waited or gave up. */
        public readonly int $waits,
        /** How many steps back of the clock were seen, tolerated or refused. */
        public readonly int $rollbacks,
        /** By how many ms the last tick taken lies ahead of the clock; 0 where it does not. */
        public readonly int $leadMs,
        /** The start of the last ID's tick, in Unix ms; null before the first ID. */
        public readonly ?int $lastIssuedMs,
    ) {
    }
}
