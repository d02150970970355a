<?php

declare(strict_types=1);

namespace App\Doctrine;

use Doctrine\DBAL\Platforms\AbstractPlatform;
use Doctrine\DBAL\Types\BigIntType;

/**
 * Doctrine: a BIGINT that is an int in PHP. DBAL's own type `bigint` gives a string before DBAL 4.
 *
 *     Type::addType(SnowflakeType::NAME, SnowflakeType::class);
 *
 * For JSON write (string) $id: JavaScript rounds numbers of this size.
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
