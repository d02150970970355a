<?php

declare(strict_types=1);

namespace App\Tests;

use Polyflake\Counter;
use Polyflake\IdGenerator;
use Polyflake\Snowflake;

/**
 * The generators that every recipe must accept.
 */
trait Generators
{
    /**
     * @return array<string, array{callable(string): (IdGenerator&object)}>
     */
    public static function generators(): array
    {
        return [
            'node' => [static fn (string $store) => new Snowflake(node: 7)],
            'lease' => [static fn (string $store) => new Snowflake(lease: $store)],
            'counter' => [static fn (string $store) => new Counter('orders', store: $store)],
        ];
    }
}
