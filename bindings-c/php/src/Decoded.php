<?php

declare(strict_types=1);

namespace Polyflake;

use DateTimeImmutable;

/**
 * The parts of an ID, from Layout::decode() or Snowflake::decode(). Can be compared with ==.
 */
final class Decoded
{
    /**
     * @internal
     *
     * @param array<string, int> $fields
     */
    public function __construct(
        /** The ID: an int, or a decimal string if its top bit is set. */
        public readonly int|string $id,
        /** The start of the ID's tick, in Unix ms. */
        public readonly int $timestampMs,
        /** The start of the ID's tick, in UTC. */
        public readonly DateTimeImmutable $time,
        /** The number of ticks since the epoch. */
        public readonly int $ticks,
        /** All node bits as one number, the highest field first. */
        public readonly int $node,
        /** The values of the node fields by name, the highest field first. */
        public readonly array $fields,
        /** The sequence number within the tick. */
        public readonly int $sequence,
    ) {
    }
}
