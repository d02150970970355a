<?php

declare(strict_types=1);

namespace App\Tests;

use Polyflake\IdGenerator;

/**
 * The test's own generator, which always returns the same ID.
 */
final class Given implements IdGenerator
{
    public function __construct(private int $id)
    {
    }

    public function nextId(): int
    {
        return $this->id;
    }

    public function nextIds(int $n): array
    {
        return array_fill(0, $n, $this->id);
    }
}
