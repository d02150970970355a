<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use Exception;
use PHPUnit\Framework\TestCase;
use Polyflake\Exception\ClockFailedException;
use Polyflake\Exception\InvalidOptionException;
use Polyflake\Exception\PolyflakeException;
use Polyflake\Exception\StateFileException;
use Polyflake\Snowflake;

/**
 * Tests state files: one node for all processes on a host.
 */
final class StateTest extends TestCase
{
    use AssertsThrows;

    private const MS = 1700000000000;

    private Folder $folder;
    private string $state;

    protected function setUp(): void
    {
        $this->folder = new Folder();
        $this->state = "{$this->folder->path}/state";
    }

    protected function tearDown(): void
    {
        $this->folder->remove();
    }

    public function testProcessesShareANodeAndARestartContinues(): void
    {
        if (!function_exists('posix_kill')) {
            self::markTestSkipped('needs the extension posix');
        }
        $last = 0;
        for ($round = 0; $round < 3; $round++) {
            $taken = $this->takeInTwoProcesses(930);
            self::assertCount(2 * 200 * 51, array_unique($taken));
            self::assertGreaterThan($last, min($taken));
            $last = max($taken);
        }
        $ids = new Snowflake(node: 930, maxWaitMs: 60_000, state: $this->state);
        self::assertGreaterThan($last, $ids->nextId());
    }

    public function testAClockThatThrowsWhileTheFileIsOpened(): void
    {
        $thrown = new Exception('no time');
        $build = fn () => new Snowflake(node: 949, clock: static fn () => throw $thrown, state: $this->state);
        $exception = $this->assertThrows(ClockFailedException::class, 'clock', $build);
        self::assertSame($thrown, $exception->getPrevious());
    }

    public function testAForkedChildSharesTheNode(): void
    {
        if (!function_exists('pcntl_fork')) {
            self::markTestSkipped('needs the extension pcntl');
        }
        $program = Program::run([__DIR__ . '/scripts/fork-state.php', $this->state]);
        self::assertSame(0, $program->status, $program->output);
        $ids = explode("\n", trim($program->output));
        self::assertCount(1 + 2 * 1002, $ids);
        self::assertCount(1 + 2 * 1002, array_unique($ids));
    }

    public function testACustomClockContinues(): void
    {
        $at = fn (int $ms) => new Snowflake(node: 931, clock: static fn (): int => $ms, state: $this->state);
        $at(self::MS); // the cursor of a new file starts about a second ahead
        $first = $at(self::MS + 10_000)->nextId();
        $later = $at(self::MS + 9_500);
        self::assertSame($first + 1, $later->nextId());
    }

    public function testOtherFilesAreAnErrorAndLeftUnchanged(): void
    {
        $make = fn (int $node) => fn () => new Snowflake(node: $node, state: $this->state);
        file_put_contents($this->state, 'precious');
        $exception = $this->assertThrows(StateFileException::class, 'state file', $make(932));
        self::assertSame([11, 'state_file'], [$exception->getCode(), $exception->name]);
        self::assertSame('precious', file_get_contents($this->state));
        unlink($this->state);

        // Another process writes the file, so that this one has no cursor for it.
        $code = 'require $argv[1]; (new Polyflake\Snowflake(node: 932, state: $argv[2]))->nextId();';
        $program = Program::run(['-r', $code, dirname(__DIR__) . '/autoload.php', $this->state]);
        self::assertSame([0, ''], [$program->status, $program->output]);
        $this->assertThrows(StateFileException::class, 'another layout or node', $make(933));
        $bytes = (string) file_get_contents($this->state);
        $damaged = substr($bytes, 0, 16) . ~substr($bytes, 16, 112) . substr($bytes, 128);
        file_put_contents($this->state, $damaged);
        $this->assertThrows(StateFileException::class, 'damaged', $make(932));
        self::assertSame($damaged, file_get_contents($this->state));
    }

    public function testInvalidPaths(): void
    {
        $make = static fn (string $path) => static fn () => new Snowflake(node: 934, state: $path);
        $missing = "{$this->folder->path}/missing/state";
        $this->assertThrows(StateFileException::class, 'created', $make($missing));
        $this->assertThrows(InvalidOptionException::class, 'state', $make(''));
        // A NUL must not cut the path short.
        foreach (["$this->state\0", "$this->state\0.txt"] as $path) {
            $this->assertThrows(StateFileException::class, 'path', $make($path));
        }
        self::assertSame(['.', '..'], scandir($this->folder->path));
    }

    public function testAPathIsBytes(): void
    {
        foreach (["caf\xff", "caf\u{FFFD}", 'caf␀'] as $number => $name) {
            $path = "{$this->folder->path}/$name";
            self::assertSame(937 + $number, (new Snowflake(node: 937 + $number, state: $path))->node());
            self::assertFileExists($path);
            Snowflake::resetState($path);
        }
        self::assertCount(2 + 3, (array) scandir($this->folder->path));
    }

    public function testANodeHasAFileOrNone(): void
    {
        $plain = new Snowflake(node: 935);
        $this->assertThrows(InvalidOptionException::class, 'state file', fn () => new Snowflake(
            node: 935,
            state: $this->state,
        ));
        $plain->nextId();
    }

    public function testACursorFarAheadMustBeReset(): void
    {
        $at = fn (int $ms) => new Snowflake(node: 936, clock: static fn (): int => $ms, state: $this->state);
        $at(3471292800000); // the cursor of a new file starts about a second ahead
        $ahead = $at(3471292810000);
        $ahead->nextId();
        $make = fn () => new Snowflake(node: 936, state: $this->state);
        $this->assertThrows(StateFileException::class, 'reset_state', $make);
        $bytes = file_get_contents($this->state);
        $this->assertThrows(PolyflakeException::class, '', fn () => Snowflake::resetState("$this->state\0"));
        self::assertSame($bytes, file_get_contents($this->state));
        Snowflake::resetState($this->state);
        $this->assertThrows(StateFileException::class, 'replaced', $ahead->nextId(...));
        self::assertSame(936, $make()->node());
    }

    public function testOnlyStateFilesAreReset(): void
    {
        foreach (['missing', ''] as $name) {
            $path = $name === '' ? '' : "{$this->folder->path}/$name";
            $this->assertThrows(StateFileException::class, '', static fn () => Snowflake::resetState($path));
        }
        file_put_contents($this->state, 'precious');
        $this->assertThrows(StateFileException::class, '', fn () => Snowflake::resetState($this->state));
        self::assertSame('precious', file_get_contents($this->state));
        self::assertSame(['.', '..', 'state'], scandir($this->folder->path));
    }

    /**
     * @return list<int>
     */
    private function takeInTwoProcesses(int $node): array
    {
        $processes = [];
        $all = [];
        for ($number = 0; $number < 2; $number++) {
            $command = [PHP_BINARY, __DIR__ . '/scripts/state.php', (string) $node, $this->state];
            $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w']], $pipes);
            self::assertIsResource($process);
            $processes[] = [$process, $pipes];
        }
        foreach ($processes as [, $pipes]) {
            self::assertSame("ready\n", fgets($pipes[1]));
        }
        foreach ($processes as [, $pipes]) {
            fwrite($pipes[0], "go\n");
        }
        foreach ($processes as [$process, $pipes]) {
            $taken = array_map(intval(...), explode(' ', trim((string) stream_get_contents($pipes[1]))));
            proc_close($process);
            self::assertCount(200 * 51, $taken);
            array_push($all, ...$taken);
        }
        return $all;
    }
}
