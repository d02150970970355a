<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * Something that gives unique IDs: a Snowflake, a Counter, or a generator of your own. What takes an ID from any of
 * them takes this.
 */
interface IdGenerator
{
    /**
     * The next ID.
     */
    public function nextId(): int;

    /**
     * $n IDs. If it throws, those that were already taken are lost, but never repeated.
     *
     * @return list<int>
     */
    public function nextIds(int $n): array;
}
