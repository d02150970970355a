<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use Polyflake\Snowflake;

/**
 * The place where a preload script tries to leave a Snowflake for the requests of all workers.
 */
final class LeftOver
{
    public static ?Snowflake $ids = null;

    public static function ids(): ?Snowflake
    {
        static $ids = null;
        return $ids ??= self::$ids;
    }
}
