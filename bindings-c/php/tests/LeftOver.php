<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use Polyflake\Snowflake;

/**
 * Where a preload script tries to leave a Snowflake to the requests of all workers.
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
