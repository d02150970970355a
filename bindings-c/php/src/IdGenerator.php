<?php

declare(strict_types=1);

namespace Polyflake;

/**
 * Something that generates unique IDs: a Snowflake, a Counter, or your own generator. A function that works with any of
 * them takes this type.
 */
interface IdGenerator
{
    /**
     * The next ID.
     */
    public function nextId(): int;

    /**
     * $n IDs. If it throws, the IDs that it had already taken are lost, never repeated.
     *
     * @return list<int>
     */
    public function nextIds(int $n): array;
}
