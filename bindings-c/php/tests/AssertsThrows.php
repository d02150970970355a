<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use Throwable;

/**
 * Checks the class and a part of the message of what a call throws.
 */
trait AssertsThrows
{
    private function assertThrows(string $class, string $words, callable $call): Throwable
    {
        try {
            $call();
        } catch (Throwable $thrown) {
            self::assertInstanceOf($class, $thrown, (string) $thrown);
            self::assertStringContainsString($words, $thrown->getMessage());
            return $thrown;
        }
        self::fail("$class was not thrown");
    }
}
