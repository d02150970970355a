<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * A source of unique IDs: a Snowflake, a Counter, or your own generator. Functions that work with any of them take this
 * type.
 */
interface IdGenerator
{
    /**
     * Returns the next ID.
     */
    public function nextId(): int;

    /**
     * Returns $n IDs. If this throws, the IDs that were already taken are lost, never repeated.
     *
     * @return list<int>
     */
    public function nextIds(int $n): array;
}
