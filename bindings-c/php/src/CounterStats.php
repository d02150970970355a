<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * Counters for monitoring. They count since the first Counter with that name was opened, for the whole process.
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
        /** How many numbers were skipped, so that a block is one run and numbers keep increasing. */
        public readonly int $skipped,
        /** How often a call found no number in hand, and waited or failed. */
        public readonly int $waits,
    ) {
    }
}
