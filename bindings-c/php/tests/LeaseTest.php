<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use PHPUnit\Framework\TestCase;
use Polyflake\Counter;
use Polyflake\Exception\ClosedException;
use Polyflake\Exception\InvalidNodeException;
use Polyflake\Exception\InvalidOptionException;
use Polyflake\Exception\LeaseUnavailableException;
use Polyflake\Exception\PolyflakeException;
use Polyflake\Snowflake;

/**
 * Tests leases: nodes from a store. No other test uses the same nodes, because a node that was leased cannot be used
 * without a lease.
 */
final class LeaseTest extends TestCase
{
    use AssertsThrows;

    private Folder $folder;
    private string $store;

    protected function setUp(): void
    {
        $this->folder = new Folder();
        $this->store = "sqlite://{$this->folder->path}/leases.db?ttl=10m&wait=10s";
    }

    protected function tearDown(): void
    {
        $this->folder->remove();
    }

    public function testTwoShareALease(): void
    {
        $one = new Snowflake(lease: "$this->store&nodes=740-740");
        $two = new Snowflake(lease: "$this->store&nodes=740-740");
        $ids = [...$one->nextIds(1000), ...$two->nextIds(1000), $one->nextId(), $two->nextId()];
        self::assertCount(2002, array_unique($ids));
        self::assertSame(740, $one->decode($ids[0])->node);
        self::assertSame([740, 740], [$one->node(), $two->node()]);
        $lease = $one->lease();
        self::assertNotNull($lease);
        self::assertSame(740, $lease->node);
        self::assertSame('held', $lease->state);
        self::assertSame("sqlite://{$this->folder->path}/leases.db", $lease->store);
        self::assertGreaterThan(0, $lease->leftMs);
        self::assertLessThanOrEqual(601_000, $lease->leftMs);
        self::assertGreaterThan(1_700_000_000_000, $lease->boundMs);
        self::assertSame(0, $one->stats()->leaseLosses);

        $one->close();
        self::assertSame('closed', $one->lease()?->state);
        self::assertSame(740, $one->node());
        $this->assertThrows(ClosedException::class, 'closed', $one->nextId(...));
        self::assertSame(740, $two->decode($two->nextId())->node);
        $two->close();
        self::assertNull((new Snowflake(node: 741))->lease());
    }

    public function testAnotherProcessGetsTheNodeAfterClose(): void
    {
        $address = "$this->store&nodes=742-742&label=somebody";
        $ids = new Snowflake(lease: $address);
        $id = $ids->nextId();
        $code = 'require $argv[1]; echo (new Polyflake\Snowflake(lease: $argv[2]))->nextId();';
        $autoload = dirname(__DIR__) . '/autoload.php';
        $program = Program::run(['-r', $code, $autoload, str_replace('wait=10s', 'wait=0s', $address)]);
        self::assertStringContainsString('LeaseUnavailableException', $program->output);
        self::assertStringContainsString('node 742, held by `somebody`, becomes free first', $program->output);
        $ids->close();
        // The program exits at once, though it closes nothing.
        $program = Program::run(['-r', $code, $autoload, $address]);
        self::assertSame(0, $program->status, $program->output);
        self::assertGreaterThan($id, (int) $program->output);
        self::assertSame(742, $ids->decode((int) $program->output)->node);
    }

    public function testADestroyedOneKeepsItsLease(): void
    {
        $nodes = [];
        for ($request = 0; $request < 20; $request++) {
            $nodes[] = (new Snowflake(lease: "$this->store&nodes=750-790"))->node();
        }
        self::assertCount(1, array_unique($nodes));
        (new Snowflake(lease: "$this->store&nodes=750-790"))->close();
    }

    public function testFork(): void
    {
        if (!function_exists('pcntl_fork')) {
            self::markTestSkipped('needs the extension pcntl');
        }
        $program = Program::run([__DIR__ . '/scripts/fork-lease.php', "$this->store&nodes=743-744"]);
        self::assertSame("forked\nforked\nanother node\nthe parent continues\n", $program->output);
    }

    public function testWrongOptions(): void
    {
        $make = static fn (mixed ...$options) => static fn () => new Snowflake(...$options);
        $invalid = InvalidOptionException::class;
        $this->assertThrows($invalid, 'lease', $make(lease: ''));
        $this->assertThrows($invalid, 'redis://', $make(lease: 'gopher://host'));
        $this->assertThrows($invalid, 'lease', $make(lease: $this->store, state: '/tmp/never'));
        $this->assertThrows($invalid, 'lease', $make(lease: $this->store, clock: static fn (): int => 0));
        $this->assertThrows(InvalidNodeException::class, '1024', $make(lease: $this->store, node: 1024));
        $exception = $this->assertThrows(
            LeaseUnavailableException::class,
            'cannot be reached',
            $make(lease: 'redis://u:geheim@127.0.0.1:1/0?wait=0s'),
        );
        self::assertStringNotContainsString('geheim', $exception->getMessage());
        $ids = new Snowflake(lease: $this->store, node: ['datacenter' => 25, 'worker' => 1]);
        self::assertSame(801, $ids->node());
        $ids->close();
    }

    public function testEventsAreLogged(): void
    {
        $lines = [];
        $log = function (string $level, string $message, array $context) use (&$lines): void {
            if (!str_contains($context['store'], $this->folder->path)) {
                return; // The event is from an earlier test.
            }
            $lines[] = [$level, $context['kind'], $context['node'] ?? null];
            self::assertStringStartsWith('sqlite:///', $context['store']);
            self::assertStringContainsString('node 745 is ', $message);
        };
        Snowflake::logLeaseEvents(static fn () => null);
        (new Snowflake(lease: "$this->store&nodes=745-745"))->close();
        Snowflake::logLeaseEvents($log);
        self::assertSame([['info', 'acquired', 745], ['info', 'released', 745]], $lines);
        self::assertSame(0, Snowflake::logLeaseEvents($log));
    }

    public function testRedis(): void
    {
        $command = trim((string) shell_exec('command -v redis-server'));
        if ($command === '') {
            self::markTestSkipped('needs redis-server');
        }
        $port = RedisServer::freePort();
        $log = ['file', "{$this->folder->path}/log", 'a'];
        $options = ['--port', $port, '--bind', '127.0.0.1', '--dir', $this->folder->path, '--save', '',
            '--appendonly', 'yes', '--daemonize', 'no'];
        $server = proc_open([$command, ...$options], [1 => $log, 2 => $log], $pipes);
        self::assertIsResource($server);
        try {
            $ids = new Snowflake(lease: "redis://127.0.0.1:$port/0?init=always&nodes=746-746&wait=2m");
            self::assertSame(746, $ids->decode($ids->nextId())->node);
            self::assertSame("redis://127.0.0.1:$port/0", $ids->lease()?->store);
            $ids->close();
        } finally {
            proc_terminate($server);
            proc_close($server);
        }
    }

    public function testTracesShowNoAddress(): void
    {
        $before = [
            'zend.exception_ignore_args' => ini_set('zend.exception_ignore_args', '0'),
            'zend.exception_string_param_max_len' => ini_set('zend.exception_string_param_max_len', '40'),
        ];
        $address = 'redis://:hunter2@h:x/0';
        foreach (
            [
                'lease' => fn () => new Snowflake(lease: $address),
                'state file' => fn () => new Snowflake(node: 1, state: $address),
                'store' => fn () => new Counter('orders', store: $address),
            ] as $words => $make
        ) {
            $error = self::assertThrows(PolyflakeException::class, $words, $make);
            self::assertStringContainsString('Internal/Core.php', $error->getTraceAsString());
            self::assertStringNotContainsString('hunter', $error->getTraceAsString());
        }
        array_map(ini_set(...), array_keys($before), array_values($before));
    }
}
