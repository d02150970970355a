<?php

declare(strict_types=1);

namespace App\Tests;

use Doctrine\ORM\EntityManager;
use PHPUnit\Framework\TestCase;
use Polyflake\Exception\ClosedException;
use Polyflake\IdGenerator;
use Polyflake\Snowflake;
use Symfony\Bundle\FrameworkBundle\Console\Application;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Output\BufferedOutput;
use Symfony\Component\DependencyInjection\Exception\EnvNotFoundException;
use Symfony\Component\Filesystem\Filesystem;
use Symfony\Component\HttpFoundation\Request;

/**
 * The recipe for Symfony, with Doctrine on the MariaDB that ../test.sh has started.
 */
final class SymfonyTest extends TestCase
{
    private SymfonyKernel $kernel;
    private string $folder;

    protected function setUp(): void
    {
        $this->folder = sys_get_temp_dir() . '/polyflake-recipes-' . bin2hex(random_bytes(8));
        mkdir($this->folder);
        $_ENV['POLYFLAKE_LEASE'] = "sqlite://$this->folder/store.db";
        $this->kernel = new SymfonyKernel($this->folder);
        $this->kernel->boot();
    }

    protected function tearDown(): void
    {
        $this->kernel->shutdown();
        // Symfony has set its own error handlers.
        restore_error_handler();
        restore_exception_handler();
        unset($_ENV['POLYFLAKE_LEASE']);
        (new Filesystem())->remove($this->folder);
    }

    public function testAControllerGetsTheGenerator(): void
    {
        self::assertFileDoesNotExist("$this->folder/store.db");
        $given = [];
        for ($n = 0; $n < 3; $n++) {
            $response = $this->kernel->handle(Request::create('/orders', 'POST'));
            self::assertMatchesRegularExpression('/^\{"id":"\d+"\}$/', (string) $response->getContent());
            $given[] = (int) json_decode((string) $response->getContent())->id;
        }
        $ids = $this->kernel->getContainer()->get(IdGenerator::class);
        self::assertInstanceOf(Snowflake::class, $ids);
        $given[] = $ids->nextId();
        $sorted = $given;
        sort($sorted);
        self::assertSame($sorted, array_values(array_unique($given)));
        foreach ($given as $id) {
            self::assertSame($ids->node(), $ids->decode($id)->node);
        }
        $ids->close();
    }

    public function testAWorkerUsesItsNodeInDoctrineAndGivesItBack(): void
    {
        $container = $this->kernel->getContainer();
        $em = entityManager($this->folder);
        $container->set(EntityManager::class, $em);
        for ($n = 0; $n < 3; $n++) {
            $container->get('bus')->dispatch(new SymfonyMessage());
        }
        $application = new Application($this->kernel);
        $application->setAutoExit(false);
        $input = new ArrayInput(['command' => 'messenger:consume', 'receivers' => ['queue'], '--limit' => 3]);
        $output = new BufferedOutput();
        self::assertSame(0, $application->run($input, $output), $output->fetch());
        $ids = $container->get(IdGenerator::class);
        $em->clear();
        $found = $em->getRepository(Order::class)->findAll();
        self::assertCount(3, $found);
        foreach ($found as $order) {
            self::assertSame($ids->node(), $ids->decode($order->id)->node);
        }
        $this->expectException(ClosedException::class);
        $ids->nextId();
    }

    public function testWithoutALeaseNothingIsIssued(): void
    {
        unset($_ENV['POLYFLAKE_LEASE']);
        $this->expectException(EnvNotFoundException::class);
        $this->kernel->getContainer()->get(IdGenerator::class);
    }
}
