<?php

declare(strict_types=1);

namespace App\Doctrine;

use Doctrine\DBAL\Platforms\AbstractPlatform;
use Doctrine\DBAL\Types\BigIntType;

/**
 * Doctrine: a BIGINT that is an int in PHP. Before DBAL 4, DBAL's own type `bigint` returns a string.
 *
 *     Type::addType(SnowflakeType::NAME, SnowflakeType::class);
 *
 * In JSON, write (string) $id: JavaScript rounds numbers of this size.
 */
final class SnowflakeType extends BigIntType
{
    public const NAME = 'snowflake';

    public function getName(): string
    {
        return self::NAME;
    }

    public function convertToPHPValue($value, AbstractPlatform $platform): ?int
    {
        return $value === null ? null : (int) $value;
    }
}
