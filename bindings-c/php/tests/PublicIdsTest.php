<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use LogicException;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Polyflake\Exception\InvalidIdException;
use Polyflake\Exception\InvalidOptionException;
use Polyflake\Exception\PolyflakeException;
use Polyflake\PublicIds;
use TypeError;

/**
 * Runs every case of tests/public_ids.json, which describes its own format under "about", and tests input that is
 * possible only in PHP.
 */
final class PublicIdsTest extends TestCase
{
    use AssertsThrows;

    private const FILE = __DIR__ . '/../../../tests/public_ids.json';
    private const KEYS = ['pfk_10kvEGTqNtUTXFUlMnM4wIa', 'pfk_03KxYVLQeEpWyLpNnYpNeDo'];
    private const ID = 1541815603606036480;
    private const TEXT = 'order_15ShV20Bxc6UJvKSQbDvo0J';

    /**
     * @return iterable<string, array{string, array<string, mixed>}>
     */
    public static function cases(): iterable
    {
        $vectors = json_decode((string) file_get_contents(self::FILE), true, 64, JSON_THROW_ON_ERROR);
        foreach (array_slice($vectors, 1) as $section => $cases) {
            foreach ($cases as $number => $case) {
                yield "$section $number" => [$section, $case];
            }
        }
    }

    public function testTheFileIsComplete(): void
    {
        self::assertGreaterThan(220, iterator_count(self::cases()));
    }

    /**
     * @dataProvider cases
     * @param array<string, mixed> $case
     */
    #[DataProvider('cases')]
    public function testCase(string $section, array $case): void
    {
        match ($section) {
            'public_ids' => $this->encoded($case),
            'public_ids_read' => $this->read($case),
            'public_ids_refused' => $this->refused($case),
            'public_keys_refused' => $this->keysRefused($case),
        };
    }

    /**
     * @param array<string, mixed> $case
     */
    private function encoded(array $case): void
    {
        $ids = new PublicIds($case['keys'], $case['prefix']);
        self::assertSame($case['text'], $ids->encode($case['id']));
        $id = $ids->decode($case['text']);
        self::assertSame($case['id'], (string) $id);
        self::assertSame($case['text'], $ids->encode($id));
    }

    /**
     * @param array<string, mixed> $case
     */
    private function read(array $case): void
    {
        $ids = new PublicIds($case['keys'], $case['prefix']);
        self::assertSame($case['id'], (string) $ids->decode($case['text']));
        self::assertNotSame($case['text'], $ids->encode($case['id']));
    }

    /**
     * @param array<string, mixed> $case
     */
    private function refused(array $case): void
    {
        $ids = new PublicIds($case['keys'], $case['prefix']);
        self::assertSame('invalid_id', $case['error']);
        $position = $case['position'] === null ? '' : "position $case[position] ";
        $thrown = $this->assertThrows(InvalidIdException::class, $position, fn () => $ids->decode($case['text']));
        if ($position === '') {
            self::assertStringNotContainsString('position', $thrown->getMessage());
        }
    }

    /**
     * @param array<string, mixed> $case
     */
    private function keysRefused(array $case): void
    {
        self::assertSame('invalid_option', $case['error']);
        $thrown = $this->assertThrows(
            InvalidOptionException::class,
            '',
            fn () => new PublicIds($case['keys'], $case['prefix']),
        );
        foreach ($case['keys'] as $key) {
            for ($at = 5; $at + 4 <= strlen($key); $at++) {
                $part = substr($key, $at, 4);
                self::assertFalse(ctype_alnum($part) && str_contains($thrown->getMessage(), $part));
            }
        }
    }

    public function testKeysComeAsOneStringOrSeveral(): void
    {
        foreach ([self::KEYS, implode("\n", self::KEYS), implode(',', self::KEYS)] as $keys) {
            $ids = new PublicIds($keys, 'order');
            self::assertSame([self::TEXT, 'order'], [$ids->encode(self::ID), $ids->prefix]);
        }
        $this->assertThrows(TypeError::class, 'must be of type string', fn () => new PublicIds([1], 'order'));
        $this->assertThrows(InvalidOptionException::class, '', fn () => new PublicIds(self::KEYS[0] . "\0", 'order'));
    }

    public function testAPage(): void
    {
        $ids = new PublicIds(self::KEYS, 'order');
        $page = ['a' => 0, 'b' => self::ID, 'c' => '18446744073709551615'];
        $texts = $ids->encodeAll($page);
        self::assertSame(self::TEXT, $texts['b']);
        self::assertSame($page, $ids->decodeAll($texts));
        self::assertSame([], $ids->encodeAll([]));
        $this->assertThrows(InvalidIdException::class, '', fn () => $ids->decodeAll([self::TEXT, self::TEXT . "\0"]));
    }

    public function testWhatIsNoId(): void
    {
        $ids = new PublicIds(self::KEYS, 'order');
        foreach ([-1, '-1', '18446744073709551616', '', 'x'] as $id) {
            $this->assertThrows(InvalidIdException::class, '', fn () => $ids->encode($id));
        }
    }

    public function testKeysAreMade(): void
    {
        self::assertNotSame(PublicIds::generateKey(), PublicIds::generateKey());
        self::assertStringStartsWith('pfk_0', PublicIds::generateKey());
        $key = PublicIds::generateKey(61);
        self::assertStringStartsWith('pfk_z', $key);
        self::assertSame(7, (new PublicIds($key, ''))->decode((new PublicIds($key, ''))->encode(7)));
        foreach ([-1, 62, 1 << 32, PHP_INT_MIN, PHP_INT_MAX] as $number) {
            $this->assertThrows(InvalidOptionException::class, '', fn () => PublicIds::generateKey($number));
        }
    }

    public function testKeysStayWhereTheyAre(): void
    {
        $ids = new PublicIds(self::KEYS, 'order');
        ob_start();
        var_dump($ids);
        $shown = ob_get_clean() . print_r($ids, true);
        self::assertStringContainsString('order', $shown);
        foreach (self::KEYS as $key) {
            self::assertStringNotContainsString(substr($key, 5), $shown);
        }
        $this->assertThrows(LogicException::class, 'cannot be serialized', fn () => serialize($ids));
        $this->assertThrows(LogicException::class, 'cannot be cloned', fn () => clone $ids);
    }

    public function testAStackTraceShowsNoKeyThatIsOutOfPlace(): void
    {
        $before = ini_set('zend.exception_ignore_args', '0');
        $ids = new PublicIds(self::KEYS, 'order');
        $calls = [
            static fn () => new PublicIds('order', self::KEYS[0]),
            static fn () => new PublicIds([self::KEYS[0], self::KEYS[0]], 'order'),
            static fn () => $ids->decode(self::KEYS[0]),
        ];
        foreach ($calls as $call) {
            try {
                $call();
                self::fail('it did not throw');
            } catch (PolyflakeException $error) {
                self::assertStringNotContainsString(substr(self::KEYS[0], 5), print_r($error->getTrace()[0], true));
            }
        }
        ini_set('zend.exception_ignore_args', (string) $before);
    }

    public function testASignalHandlerMayCall(): void
    {
        if (!function_exists('pcntl_async_signals')) {
            self::markTestSkipped('needs the extension pcntl');
        }
        $program = Program::run([__DIR__ . '/scripts/public-signals.php']);
        self::assertMatchesRegularExpression('/^\d+ 0$/D', trim($program->output));
        self::assertSame(0, $program->status);
    }
}
