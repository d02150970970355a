<?php

declare(strict_types=1);

namespace Polyflake\Tests;

/**
 * Returns $value. Each reading after the first in a step advances it, up to $until.
 */
final class HeldClock
{
    private int $until;
    private int $advance = 0;
    private bool $wasRead = false;

    public function __construct(private int $value)
    {
        $this->until = $value;
    }

    /**
     * @param array<string, string> $step
     */
    public function set(array $step): void
    {
        $this->value = (int) ($step['clock'] ?? $this->value);
        $this->advance = (int) ($step['advance'] ?? 0);
        $this->until = (int) ($step['until'] ?? $this->value);
        $this->wasRead = false;
    }

    public function __invoke(): int
    {
        if ($this->wasRead) {
            $this->value = min($this->value + $this->advance, $this->until);
        }
        $this->wasRead = true;
        return $this->value;
    }
}
