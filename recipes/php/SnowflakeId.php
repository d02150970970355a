<?php

declare(strict_types=1);

namespace App\Models;

use Illuminate\Contracts\Database\Eloquent\CastsAttributes;
use Illuminate\Contracts\Database\Eloquent\SerializesCastableAttributes;
use Polyflake\Id;

/**
 * Laravel: a BIGINT that is an int in PHP, and a string in JSON, since JavaScript rounds numbers of this size. Set it
 * to an int, or to decimal text, for example from a request.
 */
final class SnowflakeId implements CastsAttributes, SerializesCastableAttributes
{
    public function get($model, string $key, $value, array $attributes): ?int
    {
        return $value === null ? null : (int) $value;
    }

    public function set($model, string $key, $value, array $attributes): ?int
    {
        return is_string($value) ? Id::parse($value) : $value;
    }

    public function serialize($model, string $key, $value, array $attributes): ?string
    {
        return $value === null ? null : (string) $value;
    }
}
