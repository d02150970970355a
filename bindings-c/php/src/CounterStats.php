<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * Counters for monitoring, counted since the first Counter of that name was opened, by all of this process.
 */
final class CounterStats
{
    /**
     * @internal
     */
    public function __construct(
        /** How many numbers are in hand. */
        public readonly int $inHand,
        /** How many numbers the next segment has. */
        public readonly int $step,
        /** How often the store gave numbers. */
        public readonly int $segments,
        /** How many numbers were passed over, so that a block is one run and numbers go on increasing. */
        public readonly int $skipped,
        /** How often a call found no number in hand, and waited or failed. */
        public readonly int $waits,
    ) {
    }
}
