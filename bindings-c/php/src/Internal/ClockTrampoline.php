<?php

declare(strict_types=1);

namespace Polyflake\Internal;

use FFI\CData;
use Throwable;
use TypeError;

/**
 * The C function behind a custom clock. Each Snowflake with a custom clock has its own.
 *
 * PHP keeps every C function that it creates from a closure until the end of the request. So trampolines are reused
 * after their Snowflake is destroyed, and there are never more of them than there were Snowflakes with a clock at any
 * one time.
 *
 * @internal
 */
final class ClockTrampoline
{
    /** @var list<self> */
    private static array $idle = [];

    /** Holds the C function. */
    private readonly CData $room;

    /** @var ?callable(): int */
    private $clock = null;

    private ?Throwable $thrown = null;

    /** How many readings have begun but not finished. They may nest, and a Fiber may be suspended in one. */
    private int $readings = 0;

    private function __construct()
    {
        $this->room = Core::room('polyflake_clock');
        $this->room[0] = $this->read(...);
    }

    public static function for(callable $clock): self
    {
        $trampoline = array_pop(self::$idle) ?? new self();
        $trampoline->clock = $clock;
        return $trampoline;
    }

    public function release(): void
    {
        $this->clock = $this->thrown = null;
        self::$idle[] = $this;
    }

    public function function(): CData
    {
        return $this->room[0];
    }

    /**
     * Returns true if a library call is reading this clock. No other PHP code runs during such a call, so either the
     * caller or a Fiber is inside a clock.
     */
    public function isRead(): bool
    {
        return $this->readings > 0;
    }

    /**
     * Returns the exception that the clock threw, and clears it.
     */
    public function thrown(): ?Throwable
    {
        [$thrown, $this->thrown] = [$this->thrown, null];
        return $thrown;
    }

    /**
     * Called from C, so it must not throw.
     */
    private function read(?CData $user, CData $unixMs): int
    {
        $this->readings++;
        try {
            $now = ($this->clock)();
            if (!is_int($now)) {
                throw new TypeError('the clock must return an int of Unix ms, ' . get_debug_type($now) . ' returned');
            }
            $unixMs[0] = $now;
            return 0;
        } catch (Throwable $thrown) {
            $this->thrown = $thrown;
            return 1;
        } finally {
            $this->readings--;
        }
    }
}
