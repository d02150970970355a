<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * A field of a layout: the timestamp, the sequence, or a node field.
 */
final class Field
{
    /**
     * @internal
     */
    public function __construct(
        /** The field's name: "timestamp", "sequence", or a node field's name. */
        public readonly string $name,
        /** The width of the field, in bits. */
        public readonly int $bits,
        /** The number of bits below the field. */
        public readonly int $shift,
        /** A mask of the field's bits within an ID, for `&`; negative if it includes the top bit. */
        public readonly int $mask,
        /** True for a node field, false for the timestamp and the sequence. */
        public readonly bool $isNode,
    ) {
    }
}
