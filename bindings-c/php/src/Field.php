<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * A field of a layout: the timestamp, the sequence, or a field of the node.
 */
final class Field
{
    /**
     * @internal
     */
    public function __construct(
        public readonly string $name,
        /** The field's width. */
        public readonly int $bits,
        /** How many bits stand below the field. */
        public readonly int $shift,
        /** The field's bits in their place, for `&` with an ID; negative where the top bit is among them. */
        public readonly int $mask,
        /** Whether it is a field of the node, and neither the timestamp nor the sequence. */
        public readonly bool $isNode,
    ) {
    }
}
