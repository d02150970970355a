<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use Throwable;

/**
 * Checks the class of the exception that a call throws, and part of its message.
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
