<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use DateTimeImmutable;
use Error;
use Exception;
use LogicException;
use PHPUnit\Framework\TestCase;
use Polyflake\Exception\ClockFailedException;
use Polyflake\Exception\ClosedException;
use Polyflake\Exception\InternalException;
use Polyflake\Exception\InvalidIdException;
use Polyflake\Exception\InvalidNodeException;
use Polyflake\Exception\InvalidOptionException;
use Polyflake\Exception\PolyflakeException;
use Polyflake\Exception\TimeOutOfRangeException;
use Polyflake\Internal\Failure;
use Polyflake\Internal\Library;
use Polyflake\Layout;
use Polyflake\Snowflake;
use Polyflake\Stats;
use Throwable;
use TypeError;

final class SnowflakeTest extends TestCase
{
    use AssertsThrows;

    private const MS = 1656432460105;
    private const WIDE = 'timestamp:39|node:4|sequence:20@1700000000000/1ms';

    public function testInheritedSnowflakesFailAfterFork(): void
    {
        if (!function_exists('pcntl_fork')) {
            self::markTestSkipped('needs the extension pcntl');
        }
        $program = Program::run([__DIR__ . '/scripts/fork.php']);
        $expected = "forked\nforked\nforked\nforked\ndone\ndone\nthe parent continues\n";
        self::assertSame([$expected, 0], [$program->output, $program->status]);
    }

    public function testBuiltInClocksReadTheCurrentTime(): void
    {
        foreach (['system' => 901, 'steady' => 902] as $clock => $node) {
            $ids = new Snowflake(node: $node, clock: $clock);
            $before = (int) (microtime(true) * 1000);
            $decoded = $ids->decode($ids->nextId());
            $after = (int) (microtime(true) * 1000);
            self::assertSame($node, $decoded->node);
            self::assertSame($node, $ids->node());
            self::assertGreaterThanOrEqual($before, $decoded->timestampMs);
            self::assertLessThanOrEqual($after, $decoded->timestampMs);
        }
    }

    public function testAllCallsTakeIncreasingIds(): void
    {
        $ids = new Snowflake(node: 903, maxWaitMs: 60_000);
        $all = [];
        for ($round = 0; $round < 200; $round++) {
            $all[] = $ids->nextId();
            $all[] = (int) $ids->nextIdString();
            array_push($all, ...$ids->nextIds(7));
            foreach ($ids as $number => $id) {
                $all[] = $id;
                if ($number === 2) {
                    break;
                }
            }
        }
        $sorted = array_unique($all);
        sort($sorted);
        self::assertSame($sorted, $all);
        self::assertCount(200 * 12, $all);
    }

    public function testSnowflakesOfOneNodeShareACursor(): void
    {
        $one = new Snowflake(node: 904, maxWaitMs: 60_000);
        $other = new Snowflake(node: ['worker' => 904], layout: 'leaf', maxWaitMs: 60_000);
        $all = [];
        for ($round = 0; $round < 1000; $round++) {
            $all[] = $one->nextId();
            $all[] = $other->nextId();
        }
        self::assertCount(2000, array_unique($all));
        $this->assertThrows(InvalidOptionException::class, 'max_ahead_ms', static fn () => new Snowflake(
            node: 904,
            maxAheadMs: 5,
        ));
    }

    public function testTextFormats(): void
    {
        $ids = new Snowflake(node: 7, clock: static fn (): int => self::MS);
        self::assertMatchesRegularExpression('/^[0-9A-Za-z]{11}$/D', $ids->nextIdString('base62'));
        self::assertMatchesRegularExpression('/^[0-9a-f]{16}$/D', $ids->nextIdString(format: 'hex'));
        $this->assertThrows(InvalidOptionException::class, 'roman', static fn () => $ids->nextIdString('roman'));
        $this->assertThrows(InvalidOptionException::class, 'hex', static fn () => $ids->nextIdString("hex\0"));
    }

    public function testBatches(): void
    {
        $ids = new Snowflake(node: 7, layout: self::WIDE, clock: static fn (): int => 1800000000000);
        $batch = $ids->nextIds(100000);
        self::assertTrue(array_is_list($batch));
        self::assertSame(range($batch[0], $batch[0] + 99999), $batch);
        self::assertSame([end($batch) + 1], $ids->nextIds(1));
        foreach ([0, -1, PHP_INT_MIN, PHP_INT_MAX, (1 << 24) + 1] as $n) {
            $this->assertThrows(InvalidOptionException::class, '16777216', static fn () => $ids->nextIds($n));
        }
    }

    public function testIdsThatDoNotFitAnInt(): void
    {
        $layout = 'timestamp:63|sequence:1@0/1ms';
        $ids = new Snowflake(layout: $layout, clock: static fn (): int => PHP_INT_MAX - 10, maxAheadMs: 10);
        $this->assertThrows(InvalidIdException::class, '18446744073709551594', static fn () => $ids->nextId());
        $this->assertThrows(InvalidIdException::class, '18446744073709551595', static fn () => $ids->tryNextId());
        self::assertSame('18446744073709551596', $ids->nextIdString());
        $this->assertThrows(InvalidIdException::class, '9223372036854775807', static fn () => $ids->nextIds(2));
        self::assertSame('ffffffffffffffef', $ids->nextIdString('hex'));
        self::assertSame('18446744073709551603', $ids->decode('18446744073709551603')->id);
    }

    public function testClosed(): void
    {
        foreach ([null, static fn (): int => self::MS] as $number => $clock) {
            $ids = new Snowflake(node: 905 + $number, clock: $clock);
            $other = new Snowflake(node: 905 + $number, clock: $clock);
            $id = $ids->nextId();
            for ($twice = 0; $twice < 2; $twice++) {
                $ids->close();
                $calls = [$ids->nextId(...), $ids->tryNextId(...), $ids->nextIdString(...), $ids->stats(...)];
                $calls[] = static fn () => $ids->nextIds(3);
                $calls[] = static fn () => $ids->getIterator()->current();
                foreach ($calls as $call) {
                    $closed = $this->assertThrows(ClosedException::class, 'closed: ', $call);
                    self::assertSame([14, 'closed'], [$closed->getCode(), $closed->name]);
                }
            }
            self::assertSame(905 + $number, $ids->node());
            self::assertSame(905 + $number, $ids->decode($id)->node);
            $other->nextId();
        }
    }

    public function testWrongTypes(): void
    {
        $calls = [
            static fn () => new Snowflake(node: 7.0),
            static fn () => new Snowflake(node: true),
            static fn () => new Snowflake(node: ['datacenter' => 1, 'worker' => 7.0]),
            static fn () => new Snowflake(node: ['datacenter' => true, 'worker' => 7]),
            static fn () => new Snowflake(node: 7, layout: 1),
            static fn () => new Snowflake(node: 7, maxWaitMs: '10'),
            static fn () => new Snowflake(node: 7, maxAheadMs: 1.0),
            static fn () => new Snowflake(node: 7, maxBackwardMs: false),
            static fn () => new Snowflake(node: 7, sequenceStart: 0),
            static fn () => new Snowflake(node: 7, state: 1),
            static fn () => new Snowflake(node: 7, clock: 1656432460105),
            static fn () => new Snowflake(node: 7, clock: ['no', 'callable']),
            static fn () => (new Layout('twitter'))->decode(1.0),
            static fn () => (new Layout('twitter'))->decode(true),
            static fn () => (new Layout('twitter'))->decode(null),
            static fn () => (new Layout('twitter'))->compose('2022-06-28', 7, 0),
            static fn () => (new Layout('twitter'))->compose(self::MS, 7, 0.0),
            static fn () => (new Layout('twitter'))->minId(1.5),
        ];
        foreach ($calls as $call) {
            $this->assertThrows(TypeError::class, '', $call);
        }
        $weak = require __DIR__ . '/scripts/weak.php';
        foreach ($weak as [$says, $call]) {
            $this->assertThrows(TypeError::class, $says, $call);
        }
        $missing = static fn () => new Snowflake(node: ['datacenter' => '1', 'worker' => '']);
        $this->assertThrows(InvalidNodeException::class, 'worker', $missing);
        self::assertSame(39, (new Snowflake(node: ['datacenter' => '1', 'worker' => '7']))->node());
        $this->assertThrows(Error::class, 'Unknown named parameter', static fn () => new Snowflake(workerId: 7));
    }

    public function testInvalidOptions(): void
    {
        $this->assertThrows(InvalidNodeException::class, 'node', static fn () => new Snowflake());
        $this->assertThrows(InvalidNodeException::class, 'datacenter', static fn () => new Snowflake(node: [1, 7]));
        // A NUL must not cut a string short, and a field's name must not inject other fields.
        $this->assertThrows(PolyflakeException::class, '', static fn () => new Snowflake(node: 7, layout: "leaf\0x"));
        $this->assertThrows(InvalidNodeException::class, '', static fn () => new Snowflake(node: "7\0"));
        $node = ['datacenter=1,worker' => 7];
        $this->assertThrows(InvalidNodeException::class, '', static fn () => new Snowflake(node: $node));
        $layout = new Layout('twitter');
        $this->assertThrows(InvalidNodeException::class, '', static fn () => $layout->compose(self::MS, $node, 0));
        $this->assertThrows(TimeOutOfRangeException::class, '+', static fn () => $layout->minId(
            (new DateTimeImmutable())->setTimestamp(PHP_INT_MAX),
        ));
        // A string names a built-in clock, even if a function has that name.
        $build = static fn () => new Snowflake(node: 7, clock: 'time');
        $this->assertThrows(InvalidOptionException::class, 'time', $build);
        self::assertSame(39, (new Snowflake(node: 'datacenter=1,worker=7'))->node());
    }

    public function testALayoutObject(): void
    {
        $layout = new Layout('discord');
        $node = ['worker' => 1, 'process' => 2];
        $ids = new Snowflake(node: $node, layout: $layout, clock: static fn (): int => self::MS);
        self::assertTrue($ids->layout()->equals($layout));
        self::assertSame(['worker' => 1, 'process' => 2], $ids->decode($ids->nextId())->fields);
    }

    public function testExceptionsCarryTheirValues(): void
    {
        $now = self::MS;
        $ids = new Snowflake(node: 7, maxBackwardMs: 5, maxWaitMs: 0, clock: static function () use (&$now): int {
            return $now;
        });
        $ids->nextId();
        $now -= 100;
        try {
            $ids->nextId();
            self::fail('the clock moved back');
        } catch (PolyflakeException $exception) {
            self::assertSame('clock_moved_backwards', $exception->name);
            self::assertSame(7, $exception->getCode());
            self::assertSame(100, $exception->behindMs);
            self::assertSame(95, $exception->retryAfterMs);
            self::assertStringContainsString('100', $exception->getMessage());
            self::assertNull($exception->getPrevious());
        }
        self::assertSame(1, $ids->stats()->rollbacks);
        $bases = [
            \InvalidArgumentException::class => [1, 2, 3, 4, 5],
            \RangeException::class => [6],
            \RuntimeException::class => [7, 8, 9, 10, 11, 12, 13, 99],
            LogicException::class => [14],
        ];
        foreach ($bases as $base => $codes) {
            foreach ($codes as $code) {
                $name = Library::ffi()->polyflake_status_name($code);
                self::assertSame($base, get_parent_class(Failure::class($name)), $name);
                self::assertSame($code === 99, Failure::class($name) === InternalException::class);
            }
        }
        // An error from a later version of the library.
        self::assertSame(InternalException::class, Failure::class('unknown'));
    }

    public function testAnExceptionOfTheClockIsThePreviousOne(): void
    {
        $throw = null;
        $ids = new Snowflake(node: 7, clock: static function () use (&$throw): int {
            return $throw === null ? self::MS : throw $throw;
        });
        $calls = [$ids->nextId(...), $ids->tryNextId(...), $ids->nextIdString(...), $ids->stats(...)];
        $calls[] = static fn () => $ids->nextIds(3);
        foreach ([new Exception('no time'), new Error('a bug')] as $thrown) {
            foreach ($calls as $call) {
                $throw = $thrown;
                $exception = $this->assertThrows(ClockFailedException::class, 'clock', $call);
                self::assertSame($thrown, $exception->getPrevious());
                $throw = null;
                $call();
            }
        }
    }

    public function testAClockThatReturnsAnInvalidTime(): void
    {
        foreach ([1.5, '1656432460105', null, true, [], new DateTimeImmutable()] as $wrong) {
            $ids = new Snowflake(node: 7, clock: static fn () => $wrong);
            $exception = $this->assertThrows(ClockFailedException::class, '', $ids->nextId(...));
            self::assertInstanceOf(TypeError::class, $exception->getPrevious());
            self::assertStringContainsString(get_debug_type($wrong), $exception->getPrevious()->getMessage());
        }
        $ids = new Snowflake(node: 7, clock: static fn () => PHP_INT_MIN);
        $exception = $this->assertThrows(TimeOutOfRangeException::class, '', $ids->nextId(...));
        self::assertNull($exception->getPrevious());
    }

    public function testAClockMayTakeFromAnotherSnowflake(): void
    {
        $inner = new Snowflake(node: 7, clock: static fn (): int => self::MS);
        $outer = new Snowflake(node: 8, clock: static fn (): int => $inner->decode($inner->nextId())->timestampMs);
        self::assertSame(self::MS, $outer->decode($outer->nextId())->timestampMs);
        self::assertSame(8, $outer->decode($outer->nextId())->node);
    }

    public function testAClockMayTakeFromItsOwnSnowflake(): void
    {
        $readings = 0;
        $taken = [];
        $ids = new Snowflake(node: 7, clock: static function () use (&$ids, &$readings, &$taken): int {
            // Do not take an ID on every reading, because taking one reads the clock.
            if ($readings++ % 4 === 0) {
                $taken[] = $ids->nextId();
            }
            return self::MS;
        });
        for ($round = 0; $round < 100; $round++) {
            $taken[] = $ids->nextId();
        }
        self::assertCount(count($taken), array_unique($taken));
        self::assertGreaterThan(120, count($taken));
        unset($ids);
    }

    public function testAllKindsOfCallables(): void
    {
        $clock = new HeldClock(self::MS);
        foreach ([$clock, $clock->__invoke(...), [$clock, '__invoke'], [self::class, 'staticClock']] as $callable) {
            $ids = new Snowflake(node: 7, clock: $callable);
            self::assertSame(self::MS, $ids->decode($ids->nextId())->timestampMs);
        }
    }

    public static function staticClock(): int
    {
        return self::MS;
    }

    public function testSnowflakesWithClocksDoNotLeak(): void
    {
        $make = static function (int $count): void {
            for ($number = 0; $number < $count; $number++) {
                $text = str_repeat('x', 1000);
                $ids = new Snowflake(node: 7, clock: static fn (): int => self::MS + 0 * strlen($text));
                $ids->nextId();
            }
        };
        $make(2000);
        gc_collect_cycles();
        $before = [memory_get_usage(), self::residentBytes()];
        $make(30000);
        gc_collect_cycles();
        self::assertLessThan(100_000, memory_get_usage() - $before[0]);
        self::assertLessThan(4_000_000, self::residentBytes() - $before[1]);
    }

    public function testManySnowflakesHaveTheirOwnClocks(): void
    {
        $all = [];
        for ($number = 0; $number < 300; $number++) {
            $all[$number] = new Snowflake(node: 7, clock: static fn (): int => self::MS + $number);
            unset($all[$number - 150]);
        }
        foreach ($all as $number => $ids) {
            self::assertSame(self::MS + $number, $ids->decode($ids->nextId())->timestampMs);
        }
    }

    public function testAClockIsReleasedWithItsSnowflake(): void
    {
        $clock = new HeldClock(self::MS);
        $reference = \WeakReference::create($clock);
        $ids = new Snowflake(node: 7, clock: $clock);
        $ids->nextId();
        unset($clock);
        self::assertNotNull($reference->get());
        unset($ids);
        self::assertNull($reference->get());
        // The clock is freed even if the Snowflake could not be created.
        $clock = new HeldClock(self::MS);
        $reference = \WeakReference::create($clock);
        $this->assertThrows(InvalidNodeException::class, '', static fn () => new Snowflake(node: -1, clock: $clock));
        unset($clock);
        gc_collect_cycles();
        self::assertNull($reference->get());
    }

    public function testSnowflakesCannotBeCopied(): void
    {
        $ids = new Snowflake(node: 7, clock: static fn (): int => self::MS);
        $ids->nextId();
        $this->assertThrows(LogicException::class, 'cannot be cloned', static fn () => clone $ids);
        $this->assertThrows(LogicException::class, 'cannot be serialized', static fn () => serialize($ids));
        $text = sprintf('O:%d:"%s":0:{}', strlen(Snowflake::class), Snowflake::class);
        $this->assertThrows(LogicException::class, 'cannot be unserialized', static fn () => unserialize($text));
        // The failed clone has not freed anything.
        gc_collect_cycles();
        self::assertSame(self::MS, $ids->decode($ids->nextId())->timestampMs);
    }

    public function testAClockMayDestroyItsSnowflake(): void
    {
        $program = Program::run([__DIR__ . '/scripts/destroyed-in-clock.php']);
        $closed = ClosedException::class;
        $failed = ClockFailedException::class;
        $expected = '';
        foreach (['nextId', 'tryNextId', 'nextIdString', 'nextIds'] as $call) {
            $expected .= "$call returns: $closed, $closed\n";
            $expected .= "$call throws: $closed, mine, $closed, mine\n";
            $expected .= "$call makes another: $closed, $closed, 1000\n";
        }
        $stats = Stats::class;
        $expected .= "stats returns: $stats, $closed\nstats throws: $failed, mine, $closed, mine\n";
        $expected .= "stats makes another: $stats, $closed, 1000\nleft: $stats\n";
        self::assertSame($expected, $program->output);
        self::assertSame(0, $program->status);
    }

    public function testASnowflakeThatIsDestroyedByHandIsClosed(): void
    {
        foreach (['system', static fn (): int => self::MS] as $clock) {
            $ids = new Snowflake(node: 7, clock: $clock);
            $ids->nextId();
            $numbers = $ids->getIterator();
            $numbers->current();
            $ids->__destruct();
            $ids->__destruct();
            $calls = [$ids->nextId(...), $ids->tryNextId(...), $ids->nextIdString(...), $ids->stats(...)];
            foreach ([...$calls, $ids->lease(...), $numbers->next(...), static fn () => $ids->nextIds(3)] as $call) {
                $this->assertThrows(ClosedException::class, 'closed', $call);
            }
            $ids->close();
            self::assertSame(7, $ids->node());
            self::assertSame(7, $ids->decode($ids->layout()->compose(self::MS, 7, 0))->node);
        }
    }

    public function testASnowflakeIsConstructedOnce(): void
    {
        $again = static fn (Snowflake $ids) => static fn () => $ids->__construct(node: 8, clock: fn () => self::MS);
        $ids = new Snowflake(node: 7, clock: static function () use (&$ids, $again): int {
            $again($ids)();
            return self::MS;
        });
        $exception = $this->assertThrows(ClockFailedException::class, '', $ids->nextId(...));
        self::assertInstanceOf(Error::class, $exception->getPrevious());
        $this->assertThrows(Error::class, 'readonly', $again($ids));
        $ids->__destruct();
        $this->assertThrows(Error::class, 'readonly', $again($ids));
        $this->assertThrows(ClosedException::class, '', $ids->nextId(...));
    }

    public function testASnowflakeThatWasNotConstructed(): void
    {
        $class = new \ReflectionClass(Snowflake::class);
        $serialized = sprintf('C:%d:"%s":0:{}', strlen($class->name), $class->name);
        foreach ([$class->newInstanceWithoutConstructor(), @unserialize($serialized)] as $ids) {
            foreach ($class->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
                if ($method->isStatic() || str_starts_with($method->name, '__')) {
                    continue;
                }
                $this->assertThrows(Error::class, '', static function () use ($ids, $method): void {
                    $result = $method->invokeArgs($ids, $method->getNumberOfRequiredParameters() > 0 ? [1] : []);
                    $result instanceof \Generator && $result->current();
                });
            }
            $ids->__destruct();
        }
    }

    public function testASignalHandlerMayTakeIds(): void
    {
        if (!function_exists('pcntl_async_signals')) {
            self::markTestSkipped('needs the extension pcntl');
        }
        $program = Program::run([__DIR__ . '/scripts/signals.php']);
        self::assertMatchesRegularExpression('/^\d+ \d+ 0$/D', trim($program->output));
        self::assertSame(0, $program->status);
    }

    public function testAClockThatExitsEndsTheProgram(): void
    {
        $program = Program::run([__DIR__ . '/scripts/exiting-clock.php']);
        self::assertStringContainsString('the clock exits', $program->output);
        self::assertStringContainsString('Throwing from FFI callbacks is not allowed', $program->output);
        self::assertStringContainsString('shutdown function', $program->output);
        self::assertStringNotContainsString('an ID', $program->output);
        self::assertSame(255, $program->status);
    }

    public function testDestructorsAtTheEndOfARequest(): void
    {
        $program = Program::run([__DIR__ . '/scripts/late-destructor.php']);
        self::assertSame(0, $program->status, $program->output);
        self::assertMatchesRegularExpression('/^7\nclosed: .*\n$/D', $program->output);
    }

    private static function residentBytes(): int
    {
        $pages = explode(' ', (string) @file_get_contents('/proc/self/statm'))[1] ?? 0;
        return (int) $pages * 4096;
    }
}
