<?php

declare(strict_types=1);

namespace App\Tests;

use App\Doctrine\SnowflakeGenerator;
use Doctrine\ORM\EntityManager;
use LogicException;
use PHPUnit\Framework\TestCase;
use Polyflake\IdGenerator;
use ReflectionProperty;

/**
 * The recipe for Doctrine, on the MariaDB that ../test.sh has started.
 */
final class DoctrineTest extends TestCase
{
    use Generators;

    private EntityManager $em;
    private string $folder;

    protected function setUp(): void
    {
        $this->folder = sys_get_temp_dir() . '/polyflake-recipes-' . bin2hex(random_bytes(8));
        mkdir($this->folder);
        $this->em = entityManager($this->folder);
    }

    protected function tearDown(): void
    {
        $this->em->getConnection()->close();
        array_map('unlink', glob($this->folder . '/*') ?: []);
        rmdir($this->folder);
    }

    /**
     * @dataProvider generators
     */
    public function testNewEntitiesTakeTheNextIds(callable $make): void
    {
        $ids = $make("sqlite://$this->folder/store.db");
        SnowflakeGenerator::use($ids);
        $before = $ids->nextId();
        $first = new Order();
        $this->em->persist($first);
        for ($n = 0; $n < 100; $n++) {
            $order = new Order();
            $order->parent = $first;
            $order->other = $before;
            $this->em->persist($order);
        }
        // Before anything is written.
        self::assertGreaterThan($before, $first->id);
        $this->em->flush();
        $after = $ids->nextId();
        $this->em->clear();
        $found = $this->em->getRepository(Order::class)->findBy([], ['id' => 'ASC']);
        self::assertCount(101, $found);
        self::assertSame($first->id, $found[0]->id);
        foreach (array_slice($found, 1) as $n => $order) {
            self::assertIsInt($order->id);
            self::assertGreaterThan($found[$n]->id, $order->id);
            self::assertLessThan($after, $order->id);
            self::assertSame($found[0], $order->parent);
            self::assertSame($before, $order->other);
        }
        $ids->close();
    }

    public function testAnIdComesBackAsItWent(): void
    {
        foreach ([1, 2 ** 53 + 1, 1541815603606036481, PHP_INT_MAX] as $id) {
            SnowflakeGenerator::use(new Given($id));
            $order = new Order();
            $order->other = $id;
            $this->em->persist($order);
            $this->em->flush();
            $this->em->clear();
            $found = $this->em->find(Order::class, $id);
            self::assertSame([$id, $id], [$found?->id, $found?->other]);
            self::assertCount(1, $this->em->getRepository(Order::class)->findBy(['other' => $id]));
        }
        $columns = $this->em->getConnection()->fetchAllAssociative('DESCRIBE doctrine_orders');
        self::assertSame(['bigint(20)'], array_values(array_unique(array_column($columns, 'Type'))));
    }

    public function testMetadataCanBeCached(): void
    {
        SnowflakeGenerator::use(new Given(5));
        $metadata = $this->em->getClassMetadata(Order::class);
        $again = unserialize(serialize($metadata));
        self::assertSame(5, $again->idGenerator->generateId($this->em, new Order()));
    }

    public function testWithoutAGeneratorNothingIsPersisted(): void
    {
        (new ReflectionProperty(SnowflakeGenerator::class, 'ids'))->setValue(null, null);
        $this->expectException(LogicException::class);
        $this->em->persist(new Order());
    }
}
