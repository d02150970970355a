<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use DateTime;
use DateTimeImmutable;
use DateTimeZone;
use Error;
use LogicException;
use PHPUnit\Framework\TestCase;
use Polyflake\Exception\InvalidIdException;
use Polyflake\Exception\TimeOutOfRangeException;
use Polyflake\Exception\UnknownLayoutException;
use Polyflake\Id;
use Polyflake\Internal\LayoutPointer;
use Polyflake\Layout;

final class LayoutTest extends TestCase
{
    use AssertsThrows;

    public function testALayoutIsAValue(): void
    {
        $layout = new Layout('leaf');
        $copies = [new Layout($layout->text), clone $layout, unserialize(serialize($layout))];
        unset($layout);
        foreach ($copies as $copy) {
            self::assertTrue($copy == $copies[0] && $copy->equals($copies[0]));
            self::assertSame(9, $copy->decode($copy->compose(1656432460105, 9, 3))->node);
        }
        self::assertFalse(new Layout('twitter') == new Layout('leaf'));
        self::assertFalse((new Layout('twitter'))->equals(new Layout('leaf')));
        $this->expectException(UnknownLayoutException::class);
        unserialize(str_replace($copies[0]->text, str_pad('', strlen($copies[0]->text), 'x'), serialize($copies[0])));
    }

    public function testALayoutIsConstructedOnce(): void
    {
        $layout = new Layout('leaf');
        $again = [static fn () => $layout->__construct('discord')];
        $again[] = static fn () => $layout->__unserialize(['text' => 'discord']);
        foreach ($again as $call) {
            $this->assertThrows(Error::class, 'readonly', $call);
            self::assertSame(9, $layout->decode($layout->compose(1656432460105, 9, 3))->node);
        }
        $class = new \ReflectionClass(Layout::class);
        $bare = $class->newInstanceWithoutConstructor();
        $calls = [$bare->epoch(...), static fn () => $bare->decode(1), static fn () => $bare->compose(1, 9, 3)];
        foreach ([...$calls, $bare->__toString(...), static fn () => $bare->minId(1)] as $call) {
            $this->assertThrows(Error::class, 'before initialization', $call);
        }
    }

    public function testTheOwnerOfALayoutIsTheOnlyOne(): void
    {
        $owner = new LayoutPointer('leaf');
        $this->assertThrows(Error::class, '__clone', static fn () => clone $owner);
        $this->assertThrows(LogicException::class, 'constructed', static fn () => $owner->__construct('twitter'));
        $owner->__destruct();
        $owner->__destruct();
        unserialize(sprintf('O:%d:"%s":0:{}', strlen(LayoutPointer::class), LayoutPointer::class))->__destruct();
    }

    public function testTimesAreInUtc(): void
    {
        $layout = new Layout('twitter');
        $decoded = $layout->decode(1541815603606036480);
        self::assertSame('2022-06-28T16:07:40.105+00:00', $decoded->time->format('Y-m-d\TH:i:s.vP'));
        self::assertSame('UTC', $decoded->time->getTimezone()->getName());
        $zoned = new DateTime('2022-06-28T18:07:40.105', new DateTimeZone('Europe/Berlin'));
        self::assertSame(1541815603606036480, $layout->compose($zoned, 378, 0));
    }

    public function testMicrosecondsRoundTowardsTheRange(): void
    {
        $layout = new Layout('leaf');
        $onTheTick = new DateTimeImmutable('2022-06-28T16:07:40.105000Z');
        $after = new DateTimeImmutable('2022-06-28T16:07:40.105001Z');
        $tick = 1 << $layout->timestampShift;
        self::assertSame($layout->minId(1656432460105), $layout->minId($onTheTick));
        self::assertSame($layout->minId(1656432460105) + $tick, $layout->minId($after));
        self::assertSame($layout->maxId(1656432460105), $layout->maxId($onTheTick));
        self::assertSame($layout->maxId(1656432460105), $layout->maxId($after));
    }

    public function testTimesOutsideEveryLayout(): void
    {
        $layout = new Layout('mastodon');
        $times = [-1, PHP_INT_MIN, PHP_INT_MAX, new DateTimeImmutable('1969-12-31T23:59:59.9999Z')];
        $times[] = new DateTimeImmutable('@' . PHP_INT_MAX);
        $times[] = new DateTimeImmutable('@' . -PHP_INT_MAX);
        foreach ($times as $number => $time) {
            foreach ([$layout->minId(...), $layout->maxId(...)] as $call) {
                try {
                    $call($time);
                    self::fail("time $number was accepted");
                } catch (TimeOutOfRangeException $exception) {
                    self::assertSame(6, $exception->getCode());
                }
            }
        }
    }

    public function testMasksWorkOnInts(): void
    {
        $layout = new Layout('twitter');
        $fields = array_column($layout->fields, null, 'name');
        self::assertSame(378 & 31, (1541815603606036480 & $fields['worker']->mask) >> $fields['worker']->shift);
    }

    public function testIdsAreIntsOrDecimalStrings(): void
    {
        foreach ([0, 1, PHP_INT_MAX] as $id) {
            self::assertSame($id, Id::parse(Id::format($id, 'base58'), 'base58'));
            self::assertSame($id, Id::parse(Id::format((string) $id)));
        }
        self::assertSame('9223372036854775808', Id::parse('8000000000000000', 'hex'));
        $invalid = [-1, PHP_INT_MIN, '-1', '', ' 1', '1 ', '1.0', '1e3', "1\0", "\xff", '18446744073709551616'];
        foreach ($invalid as $wrong) {
            try {
                Id::format($wrong);
                self::fail("$wrong was accepted");
            } catch (InvalidIdException $exception) {
                self::assertSame('invalid_id', $exception->name);
            }
        }
    }
}
