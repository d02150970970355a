<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use PHPUnit\Framework\TestCase;
use Polyflake\Internal\Library;
use Polyflake\LibraryException;

/**
 * Tests where the package looks for libpolyflake. Each test starts a separate process.
 */
final class LibraryTest extends TestCase
{
    private const TAKE = __DIR__ . '/scripts/take.php';
    private const VARIABLE = 'POLYFLAKE_LIBRARY';
    private const NONE = [self::VARIABLE => null, 'LD_LIBRARY_PATH' => null];

    private Folder $folder;

    protected function setUp(): void
    {
        $this->folder = new Folder();
    }

    protected function tearDown(): void
    {
        $this->folder->remove();
    }

    public function testTheEnvironmentVariableComesFirst(): void
    {
        $package = $this->folder->package('package');
        $this->folder->copy(self::library(), 'package/lib/libpolyflake.so.0');
        $named = $this->folder->copy(self::library(), 'named/any-polyflake-name.so');
        $program = Program::run([self::TAKE, $package], [self::VARIABLE => $named]);
        self::assertSame([realpath($named)], self::loaded($program));
    }

    public function testThenThePackagesFolder(): void
    {
        $package = $this->folder->package('package');
        $beside = $this->folder->copy(self::library(), 'package/lib/libpolyflake.so.0');
        $elsewhere = $this->folder->copy(self::library(), 'system/libpolyflake.so.0');
        foreach ([null, ''] as $none) {
            $program = Program::run([self::TAKE, $package], [
                self::VARIABLE => $none,
                'LD_LIBRARY_PATH' => dirname($elsewhere),
            ]);
            self::assertSame([realpath($beside)], self::loaded($program));
        }
    }

    public function testThenTheSystem(): void
    {
        $package = $this->folder->package('package');
        $system = $this->folder->copy(self::library(), 'system/libpolyflake.so.0');
        $environment = ['LD_LIBRARY_PATH' => dirname($system)] + self::NONE;
        self::assertSame([realpath($system)], self::loaded(Program::run([self::TAKE, $package], $environment)));
    }

    public function testTheErrorListsAllPaths(): void
    {
        $package = $this->folder->package('package');
        $this->folder->copy(__FILE__, 'package/lib/libpolyflake.so.0');
        $program = Program::run([self::TAKE, $package], self::NONE);
        if ($program->status === 0) {
            self::markTestSkipped('libpolyflake is installed among the system\'s libraries');
        }
        self::assertStringContainsString('Polyflake\LibraryException', $program->output);
        self::assertStringContainsString("- $package/lib/libpolyflake.so.0 (beside the package", $program->output);
        self::assertStringContainsString("- libpolyflake.so.0 (the system's libraries)", $program->output);
        self::assertStringContainsString('POLYFLAKE_LIBRARY is not set', $program->output);
    }

    public function testANamedLibraryIsTheOnlyOne(): void
    {
        $program = Program::run([self::TAKE, dirname(__DIR__)], [self::VARIABLE => '/nowhere/libpolyflake.so.0']);
        self::assertSame(255, $program->status);
        self::assertStringContainsString('- /nowhere/libpolyflake.so.0 (named by', $program->output);
        self::assertStringContainsString('no such file', $program->output);
        self::assertStringNotContainsString('beside the package', $program->output);
    }

    public function testALibraryOfAnotherAbi(): void
    {
        $compiler = trim((string) shell_exec('command -v cc'));
        if ($compiler === '') {
            self::markTestSkipped('needs a C compiler');
        }
        $source = "{$this->folder->path}/other.c";
        file_put_contents($source, "unsigned int polyflake_abi_version(void) { return 4711; }\n");
        $library = "{$this->folder->path}/other.so";
        exec(sprintf('%s -shared -fPIC -o %s %s', $compiler, escapeshellarg($library), escapeshellarg($source)));
        $program = Program::run([self::TAKE, dirname(__DIR__)], [self::VARIABLE => $library]);
        self::assertSame(255, $program->status);
        $needed = Library::ABI_VERSION;
        self::assertStringContainsString("its ABI version is 4711, this package needs $needed", $program->output);
    }

    public function testAnotherLibrary(): void
    {
        $program = Program::run([self::TAKE, dirname(__DIR__)], [self::VARIABLE => 'libc.so.6']);
        self::assertSame(255, $program->status);
        self::assertStringContainsString("'polyflake_abi_version'", $program->output);
    }

    public function testASecondCopyInTheProcessIsWarnedOf(): void
    {
        $copy = $this->folder->copy(self::library(), 'other/copy-of-polyflake.so');
        // The library's path is set because, given only a name, the loader would use the copy instead.
        $environment = [self::VARIABLE => (string) realpath(self::library()), 'LD_PRELOAD' => $copy];
        $program = Program::run([self::TAKE, dirname(__DIR__)], $environment);
        self::assertSame(0, $program->status, $program->output);
        $warning = 'Warning: this process has loaded Polyflake more than once, from ';
        self::assertSame(1, substr_count($program->output, $warning), $program->output);
        self::assertStringContainsString(" and from $copy:", $program->output);
    }

    public function testA32BitPhpIsAnError(): void
    {
        Library::requireSixtyFourBits(8);
        $this->expectException(LibraryException::class);
        $this->expectExceptionMessage('Polyflake needs a 64-bit PHP; this one has ints of 32 bits');
        Library::requireSixtyFourBits(4);
    }

    public function testFfiMayBeDisabled(): void
    {
        $program = Program::run(['-d', 'ffi.enable=0', self::TAKE, dirname(__DIR__)]);
        self::assertSame(255, $program->status);
        self::assertStringContainsString('Polyflake\LibraryException', $program->output);
        self::assertStringContainsString('ffi.enable', $program->output);
    }

    public function testPreloadingTheClassesAndTheLibrary(): void
    {
        self::assertPreloaded(['-d', 'ffi.preload=' . dirname(__DIR__) . '/resources/polyflake.h'], "scope 7\n");
    }

    public function testPreloadingOnlyTheClasses(): void
    {
        // PHP cannot keep a library with opcache.preload_user, which root must set.
        self::assertPreloaded([], posix_geteuid() === 0 ? "no scope 7\n" : "scope 7\n");
    }

    /**
     * @param list<string> $options
     */
    private static function assertPreloaded(array $options, string $expected): void
    {
        $preload = 'opcache.preload=' . dirname(__DIR__) . '/preload.php';
        array_push($options, '-d', 'opcache.enable_cli=1', '-d', $preload);
        if (posix_geteuid() === 0) {
            array_push($options, '-d', 'opcache.preload_user=root');
        }
        $program = Program::run([...$options, __DIR__ . '/scripts/preloaded.php']);
        $count = count((array) glob(__DIR__ . '/../src/{,*/}*.php', GLOB_BRACE));
        self::assertSame("$count classes, $expected", $program->output);
    }

    public function testTheOptimizerChangesNothing(): void
    {
        $program = Program::run(['-d', 'opcache.enable_cli=1', __DIR__ . '/../examples/quick-start.php']);
        self::assertSame(0, $program->status, $program->output);
        self::assertStringEndsWith("2016-04-30T11:18:25+00:00\n", $program->output);
    }

    /**
     * The path of the library that the tests use.
     */
    private static function library(): string
    {
        Library::ffi();
        preg_match('~\S*/libpolyflake[^/\s]*$~m', (string) file_get_contents('/proc/self/maps'), $file);
        return $file[0] ?? self::fail('libpolyflake is not among the mapped files');
    }

    /**
     * @return list<string>
     */
    private static function loaded(Program $program): array
    {
        self::assertSame(0, $program->status, $program->output);
        self::assertMatchesRegularExpression('/^\d+\n/', $program->output);
        preg_match_all('/^loaded (.*)$/m', $program->output, $files);
        return $files[1];
    }
}
