<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use PHPUnit\Framework\TestCase;
use Polyflake\Exception\PolyflakeException;
use Polyflake\Internal\Failure;
use Polyflake\Internal\Library;

/**
 * Tests that resources/polyflake.h matches ../include/polyflake.h.
 */
final class HeaderTest extends TestCase
{
    private const OURS = __DIR__ . '/../resources/polyflake.h';
    private const THEIRS = __DIR__ . '/../../include/polyflake.h';

    public function testEveryDeclarationIsInTheCHeader(): void
    {
        $theirs = self::declarations(self::THEIRS);
        $ours = self::declarations(self::OURS);
        self::assertGreaterThan(30, count($ours));
        foreach ($ours as $declaration) {
            $pointer = 'const struct polyflake_$1 * ';
            $withPointer = preg_replace('/uintptr_t (?=(snowflake|counter) )/', $pointer, $declaration);
            self::assertContains($withPointer, $theirs);
        }
        self::assertSame($ours, array_values(array_unique($ours)));
    }

    public function testCalledAndDeclaredFunctionsAreTheSame(): void
    {
        $source = '';
        foreach (['src', 'src/Internal'] as $folder) {
            foreach ((array) glob(__DIR__ . "/../$folder/*.php") as $file) {
                $source .= file_get_contents((string) $file);
            }
        }
        preg_match_all('/(?:->|\')(polyflake_\w+)(?=\(|\'|;)/', $source, $called);
        $functions = [];
        foreach (self::declarations(self::OURS) as $declaration) {
            $isType = str_starts_with($declaration, 'typedef');
            if (!$isType && preg_match('/\b(polyflake_\w+) \(/', $declaration, $match) === 1) {
                $functions[] = $match[1];
            }
        }
        $types = array_filter($called[1], static fn (string $name): bool => preg_match('/_(layout_info|decoded|detail'
            . '|field|stats|clock|lease|lease_record|counter_counts)$/', $name) === 0 || str_contains($name, 'set_')
            || $name === 'polyflake_layout_field' || preg_match('/_(snowflake|counter)_(stats|lease)$/', $name) === 1);
        self::assertEqualsCanonicalizing($functions, array_values(array_unique($types)));
    }

    public function testNumbersMatchTheCHeader(): void
    {
        $macros = self::macros();
        self::assertSame((int) $macros['POLYFLAKE_ABI_VERSION'], Library::ABI_VERSION);
        preg_match_all('/^  (POLYFLAKE_\w+) = (\d+)/m', (string) file_get_contents(self::OURS), $ours);
        self::assertNotEmpty($ours[1]);
        foreach (array_combine($ours[1], $ours[2]) as $name => $number) {
            self::assertSame($macros[$name] ?? null, $number, $name);
            self::assertSame((int) $number, Library::ffi()->$name);
        }
    }

    public function testEveryErrorHasAnException(): void
    {
        $classes = [PolyflakeException::class];
        foreach (self::macros() as $macro => $number) {
            $name = Library::ffi()->polyflake_status_name((int) $number);
            if ($name === strtolower(substr($macro, strlen('POLYFLAKE_'))) && $name !== 'ok') {
                $classes[] = Failure::class($name);
            }
        }
        $files = array_map(basename(...), (array) glob(__DIR__ . '/../src/Exception/*Exception.php'));
        $named = array_map(fn (string $class): string => substr((string) strrchr($class, '\\'), 1) . '.php', $classes);
        self::assertEqualsCanonicalizing($files, $named);
    }

    /**
     * @return array<string, string>
     */
    private static function macros(): array
    {
        preg_match_all('/^#define (\w+) (\d+)$/m', (string) file_get_contents(self::THEIRS), $macros);
        return array_combine($macros[1], $macros[2]);
    }

    /**
     * Returns the declarations, each as its tokens separated by spaces.
     *
     * @return list<string>
     */
    private static function declarations(string $file): array
    {
        $text = (string) file_get_contents($file);
        $text = (string) preg_replace('~/\*.*?\*/|//[^\n]*~s', ' ', $text);
        // Leave out what FFI cannot parse: C++ and preprocessor lines. Macros are replaced by their values.
        $text = (string) preg_replace('/^#ifdef __cplusplus\b.*?^#endif[^\n]*/ms', ' ', $text);
        $text = (string) preg_replace('/^#[^\n]*/m', ' ', $text);
        $text = strtr($text, self::macros());
        preg_match_all('/\w+|[^\s\w]/', $text, $tokens);
        $declarations = [];
        $declaration = [];
        $depth = 0;
        foreach ($tokens[0] as $token) {
            $declaration[] = $token;
            $depth += ['{' => 1, '}' => -1][$token] ?? 0;
            if ($token === ';' && $depth === 0 && $declaration[0] === 'enum') {
                $declaration = []; // these constants are macros in the C header
            } elseif ($token === ';' && $depth === 0) {
                $declarations[] = implode(' ', $declaration);
                $declaration = [];
            }
        }
        self::assertSame([], $declaration, $file);
        return $declarations;
    }
}
