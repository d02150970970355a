<?php

declare(strict_types=1);

namespace Polyflake;

use DateTimeImmutable;

/**
 * An ID taken apart, by Layout::decode() or Snowflake::decode(). Two are equal (==) where their values are.
 */
final class Decoded
{
    /**
     * @internal
     *
     * @param array<string, int> $fields
     */
    public function __construct(
        /** The ID: an int, or a decimal string where its top bit is set. */
        public readonly int|string $id,
        /** The start of the ID's tick, in Unix ms. */
        public readonly int $timestampMs,
        /** The same in UTC. */
        public readonly DateTimeImmutable $time,
        /** How many ticks after the epoch. */
        public readonly int $ticks,
        /** All node fields joined, from the highest to the lowest. */
        public readonly int $node,
        /** The node fields' values by their names, from the highest down. */
        public readonly array $fields,
        /** The number within the tick. */
        public readonly int $sequence,
    ) {
    }
}
