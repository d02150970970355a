<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use Error;
use LogicException;
use PHPUnit\Framework\TestCase;
use Polyflake\Counter;
use Polyflake\Exception\ClosedException;
use Polyflake\Exception\CounterUnavailableException;
use Polyflake\Exception\InvalidOptionException;
use Polyflake\IdGenerator;
use Polyflake\Snowflake;
use TypeError;

/**
 * Tests counters in Redis. Each test has its own server.
 */
final class CounterTest extends TestCase
{
    use AssertsThrows;

    private ?Folder $folder = null;
    private ?RedisServer $server = null;
    private string $store = '';

    protected function setUp(): void
    {
        if (!RedisServer::isInstalled()) {
            self::markTestSkipped('needs redis-server');
        }
        $this->folder = new Folder();
        $this->server = new RedisServer($this->folder->path);
        $this->store = $this->server->address;
    }

    protected function tearDown(): void
    {
        $this->server?->stop();
        $this->folder?->remove();
    }

    public function testNumbers(): void
    {
        $orders = new Counter('orders', store: $this->store);
        self::assertSame([1, 2, 3], [$orders->nextId(), $orders->nextId(), $orders->tryNextId()]);
        $same = new Counter('orders', $this->store);
        self::assertSame([4, 5], [$same->nextId(), $orders->nextId()]);
        $same->close();
        self::assertSame([6, 7, 8], $orders->nextIds(3));
        foreach ($orders as $number) {
            self::assertSame(9, $number);
            break;
        }
        $many = $orders->nextIds(500);
        self::assertSame(range(10, 509), $many);
        $first = $orders->nextBlock(2000);
        self::assertGreaterThan(509, $first);
        $after = $orders->nextId();
        self::assertTrue($after > 509 && ($after < $first || $after >= $first + 2000), "$first $after");
        self::assertSame('orders', $orders->name());

        $stats = $orders->stats();
        self::assertGreaterThan(0, $stats->inHand);
        self::assertGreaterThanOrEqual(100, $stats->step);
        self::assertGreaterThanOrEqual(2, $stats->segments);
        self::assertLessThan(1000, $stats->skipped + $stats->waits);

        foreach ([0, -1, 16_777_217, PHP_INT_MIN] as $wrong) {
            foreach ([$orders->nextIds(...), $orders->nextBlock(...)] as $call) {
                $this->assertThrows(InvalidOptionException::class, (string) $wrong, static fn () => $call($wrong));
            }
        }
        $orders->close();
    }

    public function testItGoesOnAfterClose(): void
    {
        $last = 0;
        for ($round = 0; $round < 5; $round++) {
            $counter = new Counter('reopened', $this->store, step: 50);
            $number = $counter->nextId();
            // Only the unused part of the last segment is returned, and another may have been fetched before it.
            self::assertGreaterThan($last, $number);
            self::assertLessThanOrEqual($last + 50, $number);
            $last = $counter->nextId();
            $counter->close();
        }
        $invoices = new Counter('invoices', $this->store, start: 1000);
        self::assertSame(1000, $invoices->nextId());
        $invoices->close();
    }

    public function testADestroyedOneLeavesWhatIsInHand(): void
    {
        for ($request = 1; $request <= 20; $request++) {
            self::assertSame($request, (new Counter('requests', $this->store, step: 1000))->nextId());
        }
        $counter = new Counter('requests', $this->store, step: 1000);
        self::assertLessThanOrEqual(2, $counter->stats()->segments);
        $counter->close();
    }

    public function testOneByOne(): void
    {
        $counter = new Counter('one', $this->store, step: 1);
        for ($number = 1; $number <= 20; $number++) {
            self::assertSame([$number, $number], [$counter->nextId(), $counter->peek()]);
        }
        $this->assertThrows(CounterUnavailableException::class, 'counter_unavailable', $counter->tryNextId(...));
        $counter->close();
    }

    public function testOnTheStore(): void
    {
        $counter = new Counter('mended', $this->store, step: 10);
        self::assertSame(1, $counter->nextId());
        $counter->raise(5000);
        $number = $counter->nextId();
        self::assertGreaterThan(5000, $number);
        self::assertGreaterThanOrEqual($number, $counter->peek());
        $this->assertThrows(InvalidOptionException::class, 'number is 0', static fn () => $counter->raise(0));
        $this->assertThrows(InvalidOptionException::class, 'number is ', static fn () => $counter->raise(-1));
        self::assertTrue($counter->remove());
        $this->assertThrows(CounterUnavailableException::class, 'it was removed from', $counter->nextId(...));
        $counter->close();
        $again = new Counter('mended', $this->store, step: 10);
        self::assertSame(1, $again->nextId());
        $again->close();
    }

    public function testClosed(): void
    {
        $counter = new Counter('closed', $this->store);
        $counter->nextId();
        $counter->close();
        $counter->close();
        $calls = [
            $counter->nextId(...), $counter->tryNextId(...), $counter->peek(...), $counter->remove(...),
            $counter->stats(...), static fn () => $counter->nextIds(1), static fn () => $counter->nextBlock(1),
            static fn () => $counter->raise(1),
        ];
        foreach ($calls as $call) {
            $this->assertThrows(ClosedException::class, 'closed', $call);
        }
        self::assertSame('closed', $counter->name());
        $counter->__destruct();
        foreach ($calls as $call) {
            $this->assertThrows(ClosedException::class, 'closed', $call);
        }
        $counter->close();
    }

    public function testItIsConstructedOnce(): void
    {
        $counter = new Counter('once', $this->store);
        $again = fn () => $counter->__construct('twice', $this->store);
        $this->assertThrows(Error::class, 'readonly', $again);
        self::assertSame([1, 'once'], [$counter->nextId(), $counter->name()]);
        $counter->__destruct();
        $this->assertThrows(Error::class, 'readonly', $again);
        $bare = (new \ReflectionClass(Counter::class))->newInstanceWithoutConstructor();
        $calls = [$bare->nextId(...), $bare->tryNextId(...), $bare->peek(...), $bare->remove(...), $bare->stats(...)];
        $calls[] = static fn () => $bare->nextIds(1);
        $calls[] = static fn () => $bare->nextBlock(1);
        $calls[] = static fn () => $bare->raise(1);
        foreach ([...$calls, $bare->close(...), $bare->name(...)] as $call) {
            $this->assertThrows(Error::class, 'before initialization', $call);
        }
    }

    public function testWrongOptions(): void
    {
        $store = $this->store;
        $make = static fn (mixed ...$options) => static fn () => new Counter(...$options);
        $invalid = InvalidOptionException::class;
        $this->assertThrows($invalid, 'step is 0', $make('a', $store, step: 0));
        $this->assertThrows($invalid, 'step is 1099511627776', $make('a', $store, step: 2 ** 40));
        $this->assertThrows($invalid, 'step is ', $make('a', $store, step: 'many'));
        $this->assertThrows($invalid, 'start is 0', $make('a', $store, start: 0));
        $this->assertThrows($invalid, 'max_wait_ms is -1', $make('a', $store, maxWaitMs: -1));
        $this->assertThrows($invalid, '1000 characters', $make(str_repeat('n', 1000), $store));
        $this->assertThrows($invalid, '0 characters', $make('', $store));
        $this->assertThrows($invalid, 'control character', $make("a\0b", $store));
        $this->assertThrows($invalid, 'UTF-8', $make("\xff", $store));
        $this->assertThrows($invalid, 'store is missing', $make('a'));
        $this->assertThrows($invalid, 'store is missing', $make('a', []));
        $this->assertThrows($invalid, 'store: ', $make('a', 'gopher://host'));
        foreach ([null, true, 1, [$store]] as $wrong) {
            $this->assertThrows(TypeError::class, get_debug_type($wrong) . ' given', $make('a', [$store, $wrong]));
        }
        $counter = new Counter('stepped', $store, step: 10);
        $this->assertThrows($invalid, 'step=10', $make('stepped', $store, step: 20));
        $counter->close();
        $exception = $this->assertThrows(
            CounterUnavailableException::class,
            '127.0.0.1:1',
            $make('a', 'redis://u:geheim@127.0.0.1:1/0', maxWaitMs: 100),
        );
        self::assertSame(15, $exception->getCode());
        self::assertStringNotContainsString('geheim', $exception->getMessage());
    }

    public function testTwoStores(): void
    {
        $other = str_replace('/0', '/1', $this->store);
        $counter = new Counter('two', [$this->store, $other], step: 'auto');
        $numbers = [];
        for ($n = 0; $n < 200; $n++) {
            $numbers[] = $counter->nextId();
        }
        self::assertCount(200, array_unique([...$numbers]));
        $this->assertThrows(InvalidOptionException::class, 'several stores', static fn () => $counter->nextBlock(5));
        $counter->close();
    }

    public function testTheStoreIsDown(): void
    {
        Snowflake::logLeaseEvents(static fn () => null);
        $kept = new Counter('kept', $this->store, step: 1000);
        $patient = new Counter('down', $this->store, step: 1);
        $last = $patient->nextId();
        // Opens at once, because the other one is open.
        $counter = new Counter('down', $this->store, step: 1, maxWaitMs: 200);
        self::assertSame(1, $kept->nextId());
        $this->server?->stop();
        for ($number = 2; $number <= 100; $number++) {
            self::assertSame($number, $kept->nextId());
        }
        $this->assertThrows(CounterUnavailableException::class, $this->store, $counter->nextId(...));
        $this->server?->start();
        for ($number = 0, $tries = 0; $number === 0 && $tries < 300; $tries++) {
            try {
                $number = $counter->nextId();
            } catch (CounterUnavailableException) {
                continue;
            }
        }
        self::assertGreaterThan($last, $number);
        $counter->close();
        $patient->close();
        $kept->close();
        $lines = [];
        Snowflake::logLeaseEvents(static function (string $level, string $message, array $context) use (&$lines): void {
            self::assertArrayNotHasKey('node', $context);
            $lines[$context['kind']] = $level;
        });
        self::assertSame('warning', $lines['store_unreachable'] ?? null);
        self::assertSame('info', $lines['store_reachable'] ?? null);
    }

    public function testFork(): void
    {
        if (!function_exists('pcntl_fork')) {
            self::markTestSkipped('needs the extension pcntl');
        }
        $program = Program::run([__DIR__ . '/scripts/fork-counter.php', $this->store]);
        $numbers = explode("\n", trim($program->output));
        self::assertSame(0, $program->status, $program->output);
        self::assertCount(3000, $numbers, $program->output);
        self::assertCount(3000, array_unique($numbers));
        self::assertSame($numbers, array_map(static fn (string $number): string => (string) (int) $number, $numbers));
    }

    public function testAProgramThatClosesNothingEnds(): void
    {
        $code = 'require $argv[1]; $c = new Polyflake\Counter("ends", $argv[2]); echo $c->nextId(); '
            . 'function atEnd() { global $c; try { $c->nextId(); } catch (\Throwable $e) { echo $e; } } '
            . 'register_shutdown_function("atEnd");';
        $program = Program::run(['-r', $code, dirname(__DIR__) . '/autoload.php', $this->store]);
        self::assertSame([0, '1'], [$program->status, $program->output]);
        $counter = new Counter('ends', $this->store);
        self::assertGreaterThan(2, $counter->nextId());
        $counter->close();
    }

    public function testGenerators(): void
    {
        $own = new class implements IdGenerator {
            private int $last = 0;

            public function nextId(): int
            {
                return ++$this->last;
            }

            public function nextIds(int $n): array
            {
                return array_map($this->nextId(...), range(1, $n));
            }
        };
        $insert = static fn (IdGenerator $ids): array => [$ids->nextId(), ...$ids->nextIds(3)];
        foreach ([new Snowflake(node: 747), new Counter('generator', $this->store), $own] as $ids) {
            $taken = $insert($ids);
            self::assertCount(4, array_unique($taken));
            self::assertSame(max($taken), $taken[3]);
        }
        self::assertSame([5, 6, 7, 8], $insert($own));
    }

    public function testItIsNeitherClonedNorSerialized(): void
    {
        $counter = new Counter('one of a kind', $this->store);
        $this->assertThrows(LogicException::class, 'cannot be cloned', static fn () => clone $counter);
        $this->assertThrows(LogicException::class, 'cannot be serialized', static fn () => serialize($counter));
        $serialized = 'O:17:"Polyflake\Counter":0:{}';
        $this->assertThrows(LogicException::class, 'cannot be unserialized', static fn () => unserialize($serialized));
        self::assertSame(1, $counter->nextId());
        $counter->close();
    }
}
