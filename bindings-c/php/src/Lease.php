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
        /** The node that the Snowflake holds, or last held. */
        public readonly int $node,
        /**
         * The time until which the Snowflake may issue IDs without a reply from the store, in Unix ms; null if it holds
         * no node now.
         */
        public readonly ?int $boundMs,
        /** The time left until boundMs, in ms. */
        public readonly int $leftMs,
        /** The store's address without its password. */
        public readonly string $store,
        /**
         * "held"; "unreachable" if the Snowflake holds a node but the store did not answer the last request; "lost" if
         * the lease has expired; or "closed".
         */
        public readonly string $state,
    ) {
    }
}
