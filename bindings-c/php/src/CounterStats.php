<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * Statistics for monitoring, for all Counters with this name in this process, since the first one was opened.
 */
final class CounterStats
{
    /**
     * @internal
     */
    public function __construct(
        /** How many numbers are in hand. */
        public readonly int $inHand,
        /** How many numbers the next segment will have. */
        public readonly int $step,
        /** How many times the store has handed out numbers. */
        public readonly int $segments,
        /** How many numbers were skipped to keep blocks consecutive and numbers increasing. */
        public readonly int $skipped,
        /** How many times a call found no number in hand and waited or failed. */
        public readonly int $waits,
    ) {
    }
}
