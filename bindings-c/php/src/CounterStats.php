<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * Statistics for monitoring, for the whole process, since the first Counter with that name was opened.
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
        /** How often the store handed out numbers. */
        public readonly int $segments,
        /** How many numbers were skipped to keep blocks consecutive and numbers increasing. */
        public readonly int $skipped,
        /** How often a call found no number in hand and waited or failed. */
        public readonly int $waits,
    ) {
    }
}
