<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use DateTimeImmutable;
use Error;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Polyflake\Exception\InvalidIdException;
use Polyflake\Exception\PolyflakeException;
use Polyflake\Field;
use Polyflake\Id;
use Polyflake\Layout;
use Polyflake\Snowflake;
use TypeError;

/**
 * Runs every case of tests/vectors.json through the public API. The file describes its own format under "about".
 */
final class VectorsTest extends TestCase
{
    private const FILE = __DIR__ . '/../../../tests/vectors.json';

    /** @var array<string, int> how many cases of each kind PHP cannot express */
    private static array $skipped = [];

    /** @var ?array<string, list<mixed>> */
    private static ?array $vectors = null;

    /**
     * @return array<string, list<mixed>>
     */
    private static function vectors(): array
    {
        return self::$vectors ??= json_decode((string) file_get_contents(self::FILE), true, 64, JSON_THROW_ON_ERROR);
    }

    /**
     * @return iterable<string, array{string, array<string, mixed>}>
     */
    public static function cases(): iterable
    {
        foreach (array_slice(self::vectors(), 1) as $section => $cases) {
            foreach ($cases as $number => $case) {
                yield "$section $number " . ($case['name'] ?? '') => [$section, $case];
            }
        }
    }

    public static function tearDownAfterClass(): void
    {
        foreach (self::$skipped as $what => $count) {
            echo "\nvectors: skipped $count $what that PHP's types cannot express";
        }
        echo "\n";
    }

    public function testTheFileIsComplete(): void
    {
        self::assertSame('about', array_key_first(self::vectors()));
        self::assertGreaterThan(1000, iterator_count(self::cases()));
        self::assertNotContains([], self::vectors());
    }

    public function testPresetsMatchTheVectors(): void
    {
        $given = array_column(self::vectors()['layouts'], 'given');
        self::assertEqualsCanonicalizing(
            array_values(array_filter($given, static fn (string $text): bool => strpbrk($text, ':|@/') === false)),
            Layout::presets(),
        );
    }

    /**
     * @dataProvider cases
     * @param array<string, mixed> $case
     */
    #[DataProvider('cases')]
    public function testCase(string $section, array $case): void
    {
        try {
            match ($section) {
                'errors' => $this->error($case),
                'layouts' => $this->layout($case),
                'layouts_refused' => $this->assertFails($case['error'], static fn () => new Layout($case['given'])),
                'decode' => $this->decode($case),
                'decode_refused' => $this->decodeError($case),
                'compose' => $this->compose($case),
                'compose_refused' => $this->assertFails($case['error'], self::composing($case)),
                'bounds' => $this->bounds($case),
                'texts' => $this->texts($case),
                'texts_read' => self::assertSame($case['id'], (string) Id::parse($case['text'], $case['format'])),
                'texts_refused' => $this->textError($case),
                'options' => $this->options($case),
                'options_refused' => $this->optionsError($case),
                'scripts' => $this->script($case),
            };
        } catch (Inexpressible $why) {
            $isRefused = isset($case['error']) || isset($case['min_id']['error'], $case['max_id']['error']);
            self::assertTrue($isRefused, $why->getMessage());
            self::skip("cases of $section");
        }
    }

    /**
     * @param array<string, mixed> $case
     */
    private function error(array $case): void
    {
        $class = self::exception($case['name']);
        self::assertTrue(is_subclass_of($class, PolyflakeException::class));
    }

    /**
     * @param array<string, mixed> $case
     */
    private function layout(array $case): void
    {
        $layout = new Layout($case['given']);
        self::assertSame($case['text'], $layout->text);
        self::assertSame($case['text'], (string) $layout);
        $again = new Layout($case['text']);
        self::assertTrue($layout == $again && $layout->equals($again));
        self::assertSame($case['epoch_ms'], (string) $layout->epochMs);
        self::assertSame($case['tick_ms'], (string) $layout->tickMs);
        self::assertSame($case['ids_per_tick'], (string) $layout->idsPerTick);
        self::assertSame($case['nodes'], (string) $layout->nodes);
        self::assertSame($case['ends_at_ms'], (string) $layout->endsAtMs);
        self::assertSame($case['total_bits'], $layout->totalBits);
        self::assertSame($case['timestamp_bits'], $layout->timestampBits);
        self::assertSame($case['timestamp_shift'], $layout->timestampShift);
        self::assertSame($case['sequence_bits'], $layout->sequenceBits);
        self::assertSame($case['sequence_shift'], $layout->sequenceShift);
        self::assertSame($case['node_bits'], $layout->nodeBits);
        self::assertSame($case['fields'], array_map(static fn (Field $field): array => [
            'name' => $field->name,
            'bits' => $field->bits,
            'shift' => $field->shift,
            'mask' => sprintf('%u', $field->mask),
        ], $layout->fields));
        foreach ($layout->fields as $field) {
            self::assertSame(!in_array($field->name, ['timestamp', 'sequence'], true), $field->isNode);
        }
        self::assertSame((int) $case['epoch_ms'], self::unixMs($layout->epoch()));
        self::assertSame((int) $case['ends_at_ms'], self::unixMs($layout->endsAt()));
    }

    /**
     * @param array<string, mixed> $case
     */
    private function decode(array $case): void
    {
        $layout = new Layout($case['layout']);
        $decoded = $layout->decode($case['id']);
        self::assertSame($case['id'], (string) $decoded->id);
        self::assertSame(strlen($case['id']) < 19 || is_int($case['id'] + 0), is_int($decoded->id));
        self::assertSame($case['timestamp_ms'], (string) $decoded->timestampMs);
        self::assertSame((int) $case['timestamp_ms'], self::unixMs($decoded->time));
        self::assertSame($case['ticks'], (string) $decoded->ticks);
        self::assertSame($case['node'], (string) $decoded->node);
        self::assertSame(array_map(intval(...), $case['fields']), $decoded->fields);
        self::assertSame($case['sequence'], (string) $decoded->sequence);
        self::assertTrue($layout->decode($decoded->id) == $decoded);
    }

    /**
     * @param array<string, mixed> $case
     */
    private function decodeError(array $case): void
    {
        $layout = new Layout($case['layout']);
        $this->assertFails($case['error'], static fn () => $layout->decode($case['id']));
        if ((string) (int) $case['id'] === $case['id']) {
            $this->assertFails($case['error'], static fn () => $layout->decode((int) $case['id']));
        }
    }

    /**
     * @param array<string, mixed> $case
     */
    private function compose(array $case): void
    {
        self::assertSame($case['id'], (string) self::composing($case)());
        $time = self::instant(self::int($case['time_ms']));
        $layout = new Layout($case['layout']);
        $node = self::node($case['node']);
        self::assertSame($case['id'], (string) $layout->compose($time, $node, (int) $case['sequence']));
    }

    /**
     * @param array<string, mixed> $case
     */
    private static function composing(array $case): callable
    {
        $layout = new Layout($case['layout']);
        $time = self::int($case['time_ms']);
        $node = self::node($case['node']);
        $sequence = self::int($case['sequence']);
        return static fn (): int|string => $layout->compose($time, $node, $sequence);
    }

    /**
     * @param array<string, mixed> $case
     */
    private function bounds(array $case): void
    {
        $layout = new Layout($case['layout']);
        $ms = self::int($case['time_ms']);
        foreach (['min_id' => $layout->minId(...), 'max_id' => $layout->maxId(...)] as $side => $bound) {
            foreach ([$ms, self::instant($ms)] as $time) {
                if (is_string($case[$side])) {
                    self::assertSame($case[$side], (string) $bound($time));
                } else {
                    $this->assertFails($case[$side]['error'], static fn () => $bound($time));
                }
            }
        }
    }

    /**
     * @param array<string, string> $case
     */
    private function texts(array $case): void
    {
        foreach (array_slice($case, 1) as $format => $text) {
            self::assertSame($text, Id::format($case['id'], $format));
            self::assertSame($case['id'], (string) Id::parse($text, $format));
        }
    }

    /**
     * @param array<string, mixed> $case
     */
    private function textError(array $case): void
    {
        $exception = $this->assertFails($case['error'], static fn () => Id::parse($case['text'], $case['format']));
        preg_match_all('/\bposition (\d+)\b/', $exception->getMessage(), $positions);
        if ($case['position'] === null) {
            self::assertSame([], $positions[1]);
        } else {
            self::assertContains((string) $case['position'], $positions[1]);
        }
    }

    /**
     * @param array<string, mixed> $case
     */
    private function options(array $case): void
    {
        $snowflake = self::build($case['options']);
        self::assertSame($case['node'], (string) $snowflake->node());
        self::assertSame($case['layout'], $snowflake->layout()->text);
    }

    /**
     * @param array<string, mixed> $case
     */
    private function optionsError(array $case): void
    {
        $build = static fn () => self::build($case['options']);
        if (!($case['text_only'] ?? false)) {
            $this->assertFails($case['error'], $build);
            return;
        }
        // PHP itself rejects a string for an int (TypeError), and an unknown option (Error).
        try {
            $build();
        } catch (PolyflakeException $exception) {
            self::assertSame($case['error'], $exception->name);
            return;
        } catch (Error $error) {
            self::assertMatchesRegularExpression('/Unknown named parameter|must be of type/', $error->getMessage());
            return;
        }
        self::fail('the options were accepted');
    }

    /**
     * @param array<string, mixed> $case
     */
    private function script(array $case): void
    {
        $clock = new HeldClock((int) $case['steps'][0]['clock']);
        $snowflake = new Snowflake(...self::arguments($case['options']), clock: $clock);
        foreach ($case['steps'] as $number => $step) {
            $clock->set($step);
            try {
                $this->step($snowflake, $step, "{$case['name']}, step $number: " . json_encode($step));
            } catch (Inexpressible $why) {
                // Skip only this step: it expects an error, so the rest of the script does not depend on it.
                self::assertArrayHasKey('error', $step, $why->getMessage());
                self::skip('script steps');
            }
        }
    }

    /**
     * @param array<string, mixed> $step
     */
    private function step(Snowflake $snowflake, array $step, string $where): void
    {
        $last = $step['id'] ?? $step['run']['last'] ?? $step['ids'][count($step['ids'] ?? []) - 1] ?? null;
        // If the ID's top bit is set, nextId() throws and names the ID, and nextIdString() would return the next one.
        $isTooLarge = $last !== null && (string) (int) $last !== $last;
        $call = match ($step['call']) {
            'next_id' => static fn (): array => [$isTooLarge ? $snowflake->nextId() : $snowflake->nextIdString()],
            'try_next_id' => static fn (): array => [$snowflake->tryNextId()],
            'next_ids' => static fn (): array => $snowflake->nextIds(self::int($step['n'])),
        };
        if (isset($step['error'])) {
            $exception = $this->assertFails($step['error'], $call, $where);
            self::assertSame((int) ($step['behind_ms'] ?? 0), $exception->behindMs, $where);
            self::assertSame((int) ($step['retry_after_ms'] ?? 0), $exception->retryAfterMs, $where);
        } elseif ($isTooLarge) {
            $exception = $this->assertFails('invalid_id', $call, $where);
            self::assertInstanceOf(InvalidIdException::class, $exception);
            self::assertStringContainsString($last, $exception->getMessage(), $where);
        } elseif (isset($step['run'])) {
            $ids = $call();
            self::assertCount((int) $step['run']['count'], $ids, $where);
            self::assertSame($step['run']['first'], (string) $ids[0], $where);
            self::assertSame($step['run']['last'], (string) end($ids), $where);
            $sorted = array_unique($ids);
            sort($sorted);
            self::assertSame($sorted, $ids, $where);
        } else {
            self::assertSame($step['ids'] ?? [$step['id']], array_map(strval(...), $call()), $where);
        }
    }

    private static function skip(string $what): void
    {
        self::$skipped[$what] = (self::$skipped[$what] ?? 0) + 1;
    }

    private function assertFails(string $name, callable $call, string $where = ''): PolyflakeException
    {
        try {
            $call();
        } catch (PolyflakeException $exception) {
            $numbers = array_column(self::vectors()['errors'], 'number', 'name');
            self::assertSame($name, $exception->name, $where);
            self::assertSame($numbers[$name], $exception->getCode(), $where);
            self::assertSame(self::exception($name), $exception::class, $where);
            self::assertStringStartsWith("$name: ", $exception->getMessage(), $where);
            return $exception;
        }
        self::fail("$name was not thrown $where");
    }

    /**
     * Uses a custom clock, unless the options name one, because built-in clocks share cursors.
     *
     * @param array<string, mixed> $texts
     */
    private static function build(array $texts): Snowflake
    {
        $arguments = self::arguments($texts);
        $arguments['clock'] ??= new HeldClock(1656432460105);
        return new Snowflake(...$arguments);
    }

    /**
     * Converts options to arguments. A value that does not fit PHP's type stays a string.
     *
     * @param array<string, mixed> $texts
     * @return array<string, mixed>
     */
    private static function arguments(array $texts): array
    {
        $arguments = [];
        foreach ($texts as $name => $text) {
            $parameter = preg_replace_callback('/_([a-z])/', static fn (array $m) => strtoupper($m[1]), $name);
            $arguments[$name === 'node_text' ? 'node' : $parameter] = match (true) {
                $name === 'node' => self::node($text),
                str_ends_with($name, '_ms') && preg_match('/^-?[0-9]+$/D', $text) === 1 => self::int($text),
                default => $text,
            };
        }
        return $arguments;
    }

    /**
     * @param string|array<string, string>|null $node
     * @return int|string|array<string, int>|null
     */
    private static function node(string|array|null $node): int|string|array|null
    {
        if (is_array($node)) {
            return array_map(self::int(...), $node);
        }
        // PHP also accepts strings, for IDs that do not fit an int.
        return $node !== null && (string) (int) $node === $node ? (int) $node : $node;
    }

    private static function int(string $text): int
    {
        return (string) (int) $text === $text ? (int) $text : throw new Inexpressible("$text is not an int");
    }

    private static function exception(string $name): string
    {
        return 'Polyflake\\Exception\\' . str_replace('_', '', ucwords($name, '_')) . 'Exception';
    }

    private static function instant(int $unixMs): DateTimeImmutable
    {
        $ms = ($unixMs % 1000 + 1000) % 1000;
        $seconds = intdiv($unixMs - $ms, 1000);
        return (new DateTimeImmutable("@$seconds"))->modify("+$ms ms");
    }

    private static function unixMs(DateTimeImmutable $time): int
    {
        self::assertSame('UTC', $time->getTimezone()->getName());
        return $time->getTimestamp() * 1000 + (int) $time->format('v');
    }
}
