<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * A Snowflake's lease at one instant, from Snowflake::lease().
 */
final class Lease
{
    /**
     * @internal
     */
    public function __construct(
        /** The node that it has, or last had. */
        public readonly int $node,
        /** Until when it may issue IDs without a reply from the store, in Unix ms; null if it has no node now. */
        public readonly ?int $boundMs,
        /** How many ms that is from now. */
        public readonly int $leftMs,
        /** The store's address, without password. */
        public readonly string $store,
        /**
         * "held"; "unreachable" if it has a node but the store did not answer the last request; "lost" if it has
         * expired; or "closed".
         */
        public readonly string $state,
    ) {
    }
}
