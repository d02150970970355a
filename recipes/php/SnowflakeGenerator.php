<?php

declare(strict_types=1);

namespace App\Doctrine;

use Closure;
use Doctrine\ORM\EntityManagerInterface;
use Doctrine\ORM\Id\AbstractIdGenerator;
use LogicException;
use Polyflake\IdGenerator;

/**
 * Doctrine: new entities take the program's next ID when they are persisted.
 *
 *     SnowflakeGenerator::use(new Snowflake(node: 7)); // once, when the program starts
 *
 *     #[Id, Column(type: SnowflakeType::NAME), GeneratedValue('CUSTOM')]
 *     #[CustomIdGenerator(SnowflakeGenerator::class)]
 *     public ?int $id = null;
 *
 * Doctrine creates an object of this class for each entity and keeps it in its metadata cache, so the object does not
 * hold the generator. In Symfony, PolyflakeBundle calls `use`.
 */
final class SnowflakeGenerator extends AbstractIdGenerator
{
    private static IdGenerator|Closure|null $ids = null;

    /**
     * A Closure must return the generator, and is called when the first ID is needed.
     */
    public static function use(IdGenerator|Closure $ids): void
    {
        self::$ids = $ids;
    }

    public function generateId(EntityManagerInterface $em, $entity): int
    {
        if (self::$ids instanceof Closure) {
            self::$ids = (self::$ids)();
        }
        $ids = self::$ids ?? throw new LogicException('call SnowflakeGenerator::use first');

        return $ids->nextId();
    }
}
