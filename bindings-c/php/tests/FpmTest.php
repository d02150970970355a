<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use PHPUnit\Framework\TestCase;

/**
 * Runs examples/fpm and other scripts under php-fpm with four workers, over a socket in a temporary folder.
 */
final class FpmTest extends TestCase
{
    private const REQUESTS = 400;
    private const WORKERS = 4;
    private const PRELOADED = ['opcache.preload' => __DIR__ . '/../preload.php', 'ffi.enable' => 'preload'];

    private Folder $folder;
    /** @var ?resource */
    private $fpm = null;
    private ?RedisServer $redis = null;

    protected function setUp(): void
    {
        $this->folder = new Folder();
    }

    protected function tearDown(): void
    {
        if ($this->fpm !== null) {
            // This is the master itself, not a shell. It stops its workers.
            proc_terminate($this->fpm);
            proc_close($this->fpm);
        }
        $this->redis?->stop();
        $this->folder->remove();
    }

    public function testPreloaded(): void
    {
        $this->start([...self::PRELOADED, 'ffi.preload' => dirname(__DIR__) . '/resources/polyflake.h']);
        $nodes = $this->serveUntil(static fn (array $nodes): bool => count($nodes) === self::WORKERS);
        // The successor of a killed worker takes over its number, and repeats no ID.
        $killed = array_key_first($nodes);
        $this->kill($killed);
        $later = $this->serveUntil(static fn (array $later): bool => in_array($nodes[$killed], $later, true));
        self::assertArrayNotHasKey($killed, $later);
    }

    public function testClassesPreloaded(): void
    {
        $this->start(self::PRELOADED);
        $this->serve();
    }

    public function testWithoutPreload(): void
    {
        $this->start(['ffi.enable' => 'true']);
        $this->serve();
    }

    public function testWithoutPreloadTheErrorNamesTheSettings(): void
    {
        $this->start(['ffi.enable' => 'preload', 'display_errors' => '1', 'html_errors' => '0']);
        $this->request(1, dirname(__DIR__) . '/examples/fpm/index.php');
        $answer = (string) file_get_contents("{$this->folder->path}/answer-1");
        self::assertStringContainsString('Polyflake\LibraryException', $answer);
        self::assertStringContainsString(dirname(__DIR__) . '/preload.php', $answer);
    }

    public function testAllWorkersShareANodeThroughAStateFile(): void
    {
        $this->start(['ffi.enable' => 'true']);
        $serve = fn (): array => $this->answers(__DIR__ . '/scripts/fpm-state.php');
        $served = $this->serveUntil(static fn (array $served): bool => count($served) > 1, $serve);
        self::assertSame([3], array_values(array_unique($served)));
        // The successor of a killed worker continues with the same node.
        $this->kill(array_key_first($served));
        self::assertSame([3], array_values(array_unique($serve())));
    }

    public function testEachWorkerLeasesOneNode(): void
    {
        $this->start(['ffi.enable' => 'true']);
        $this->serveLeased();
    }

    public function testPreloadingLeasesNothing(): void
    {
        $this->start(self::PRELOADED);
        self::assertFileDoesNotExist("{$this->folder->path}/leases.db");
        $this->serveLeased();
    }

    public function testALeaseOfTheMasterIsNotItsWorkers(): void
    {
        $this->start([...self::PRELOADED, 'opcache.preload' => __DIR__ . '/scripts/preload-lease.php'], inMaster: true);
        self::assertFileExists("{$this->folder->path}/leases.db");
        $this->serveLeased();
    }

    public function testWorkersRepeatNothingThatThePreloadScriptTook(): void
    {
        $script = __DIR__ . '/scripts/preload-snowflakes.php';
        $this->start([...self::PRELOADED, 'opcache.preload' => $script], inMaster: true);
        foreach (json_decode((string) file_get_contents("{$this->folder->path}/preloaded")) as $id) {
            $this->ids[$id] = 0;
        }
        self::assertCount(210, $this->ids);
        // Every answer shows that the master's node without a state file was refused, and that no object was left
        // behind.
        $served = $this->serveUntil(
            static fn (array $served): bool => count($served) > 1,
            fn (): array => $this->answers(__DIR__ . '/scripts/fpm-preloaded.php'),
        );
        self::assertSame([201], array_values(array_unique($served)));
    }

    /**
     * @dataProvider waysToShareAHost
     */
    public function testRecycledAndReloadedWorkersRepeatNothing(string $script, int $maxRequests): void
    {
        $this->start(self::PRELOADED, "pm.max_requests = $maxRequests");
        $before = $this->answers($script, 100);
        // The master re-executes itself, keeps its process ID and its socket, and preloads again.
        posix_kill(proc_get_status($this->fpm)['pid'], SIGUSR2);
        for ($waits = 0; substr_count($this->log(), 'ready to handle connections') < 2; $waits++) {
            self::assertLessThan(3000, $waits, 'php-fpm did not reload: ' . $this->log());
            usleep(10_000);
        }
        $after = $this->answers($script, 100);
        self::assertSame([], array_intersect_key($before, $after));
        self::assertGreaterThan(self::WORKERS, count($before));
        self::assertStringNotContainsString('on signal', $this->log());
    }

    /**
     * @return array<string, array{string, int}> scripts, and how many requests a worker serves: the nodes that workers
     *     leased do not become free again before the test is over
     */
    public static function waysToShareAHost(): array
    {
        return [
            'a state file' => [__DIR__ . '/scripts/fpm-state.php', 3],
            'a slot for each worker' => [dirname(__DIR__) . '/examples/fpm/index.php', 3],
            'a lease for each worker' => [__DIR__ . '/scripts/fpm-lease.php', 10],
        ];
    }

    public function testRequestsOfAWorkerGoOnWithWhatItsCounterHasInHand(): void
    {
        if (!RedisServer::isInstalled()) {
            self::markTestSkipped('needs redis-server');
        }
        $this->redis = new RedisServer($this->folder->path);
        $this->start(['ffi.enable' => 'true']);
        $this->request(100, __DIR__ . '/scripts/fpm-counter.php');
        $all = [];
        $ofWorkers = [];
        for ($number = 1; $number <= 100; $number++) {
            $answer = (string) file_get_contents("{$this->folder->path}/answer-$number");
            $body = json_decode(substr($answer, (int) strpos($answer, '{')), true);
            self::assertIsArray($body, $answer . $this->log());
            // Segments have 100,000 numbers, so a worker has fetched at most the one in hand and the next.
            self::assertLessThanOrEqual(2, $body['segments']);
            array_push($all, ...$body['ids']);
            $ofWorkers[$body['process']] = [...$ofWorkers[$body['process']] ?? [], ...$body['ids']];
        }
        self::assertCount(2200, array_unique($all));
        foreach ($ofWorkers as $numbers) {
            sort($numbers);
            self::assertSame(range($numbers[0], $numbers[0] + count($numbers) - 1), $numbers);
        }
    }

    /**
     * Sends requests to workers with leases, and checks that each worker keeps its node.
     */
    private function serveLeased(): void
    {
        $serve = fn (): array => $this->answers(__DIR__ . '/scripts/fpm-lease.php');
        $served = $this->serveUntil(static fn (array $served): bool => count($served) > 1, $serve);
        self::assertCount(count($served), array_unique($served));
        foreach ($served as $node) {
            self::assertContains($node, range(700, 799));
        }
    }

    /** @var array<string, int> every ID seen in any round of a test */
    private array $ids = [];

    /**
     * @return array<int, int> the nodes of the workers by process ID
     */
    private function serve(): array
    {
        $nodes = $this->answers(dirname(__DIR__) . '/examples/fpm/index.php');
        self::assertCount(count($nodes), array_unique($nodes));
        foreach ($nodes as $node) {
            self::assertSame(3, $node >> 5);
        }
        return $nodes;
    }

    /**
     * Sends requests until $done, since on a busy machine only some of the workers may receive any.
     *
     * @param callable(array<int, int>): bool $done
     * @return array<int, int> as serve()
     */
    private function serveUntil(callable $done, ?callable $serve = null): array
    {
        $nodes = [];
        for ($round = 0; $round < 20 && !$done($nodes); $round++) {
            $nodes = $serve === null ? $this->serve() : $serve();
        }
        self::assertTrue($done($nodes), (string) json_encode($nodes));
        return $nodes;
    }

    /**
     * Requests a script, and checks that no ID is repeated.
     *
     * @return array<int, int> the nodes of the workers by process ID
     */
    private function answers(string $script, int $count = self::REQUESTS): array
    {
        $this->request($count, $script);
        $nodes = [];
        for ($number = 1; $number <= $count; $number++) {
            $answer = (string) file_get_contents("{$this->folder->path}/answer-$number");
            $body = json_decode(substr($answer, (int) strpos($answer, '{')), true);
            self::assertIsArray($body, $answer . $this->log());
            self::assertSame($nodes[$body['process']] ?? $body['node'], $body['node']);
            $nodes[$body['process']] = $body['node'];
            foreach ($body['ids'] as $id) {
                self::assertArrayNotHasKey($id, $this->ids);
                $this->ids[$id] = $number;
            }
        }
        return $nodes;
    }

    /**
     * Kills a worker, and waits until the master has reaped it: a worker that is being killed still accepts requests.
     */
    private function kill(int $process): void
    {
        self::assertTrue(posix_kill($process, 9));
        for ($waits = 0; posix_kill($process, 0); $waits++) {
            self::assertLessThan(6000, $waits, "worker $process did not end" . $this->log());
            usleep(10_000);
        }
    }

    /**
     * @param array<string, string> $settings
     * @param string $pool additional settings of the pool
     * @param bool $inMaster whether to preload in the master, which forks the workers. As root, PHP preloads in another
     *     process, which then exits
     */
    private function start(array $settings, string $pool = '', bool $inMaster = false): void
    {
        $fpm = $this->command(['php-fpm', 'php-fpm' . PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION]);
        $this->command(['cgi-fcgi']);
        $path = $this->folder->path;
        $isRoot = posix_geteuid() === 0 && !$inMaster;
        $limits = "pm = static\npm.max_children = " . self::WORKERS . "\n$pool";
        $environment = "env[FOLDER] = $path\nenv[HOST_NUMBER] = 3";
        $environment .= "\nenv[WORKER_SLOTS] = $path/slots\nenv[STATE_FILE] = $path/state";
        $lease = "sqlite://$path/leases.db?wait=30s&nodes=700-799";
        $environment .= "\nenv[LEASE] = \"$lease\"";
        $environment .= $this->redis === null ? '' : "\nenv[COUNTER] = \"{$this->redis->address}\"";
        foreach (['POLYFLAKE_LIBRARY', 'LD_LIBRARY_PATH'] as $name) {
            $environment .= getenv($name) === false ? '' : "\nenv[$name] = " . getenv($name);
        }
        file_put_contents("$path/fpm.conf", <<<CONF
            [global]
            error_log = $path/fpm-log
            daemonize = no
            [polyflake]
            listen = $path/socket
            catch_workers_output = yes
            $limits
            $environment

            CONF . ($isRoot ? "user = root\ngroup = root\n" : ''));
        $options = $isRoot ? ['-R'] : [];
        $settings += ['opcache.enable' => '1'];
        if ($isRoot && isset($settings['opcache.preload'])) {
            $settings['opcache.preload_user'] = 'root';
        }
        foreach ($settings as $name => $value) {
            array_push($options, '-d', "$name=$value");
        }
        $output = ['file', "$path/log", 'a'];
        $command = [...$isRoot ? [] : $this->asUser(), $fpm, '-F', '-y', "$path/fpm.conf", ...$options];
        $ofMaster = ['FOLDER' => $path, 'LEASE' => $lease] + getenv();
        $this->fpm = proc_open($command, [1 => $output, 2 => $output], $pipes, null, $ofMaster) ?: null;
        // The socket's file appears a moment before the server listens.
        for ($waits = 0; !$client = @stream_socket_client("unix://$path/socket"); $waits++) {
            $status = proc_get_status($this->fpm);
            self::assertTrue($status['running'] && $waits < 3000, 'php-fpm did not start: ' . $this->log());
            usleep(10_000);
        }
        fclose($client);
    }

    /**
     * Sends requests, eight at a time, and writes the answers to files.
     */
    private function request(int $count, string $script): void
    {
        $one = 'exec cgi-fcgi -bind -connect "$0/socket" > "$0/answer-$1" 2> "$0/errors-$1"';
        exec(sprintf(
            'seq %d | SCRIPT_FILENAME=%s REQUEST_METHOD=GET xargs -P 8 -I NUMBER sh -c %s %s NUMBER',
            $count,
            escapeshellarg($script),
            escapeshellarg($one),
            escapeshellarg($this->folder->path),
        ), $output, $status);
        self::assertSame(0, $status, implode("\n", $output) . $this->log());
    }

    /**
     * Returns the prefix that runs a command as an unprivileged user, if the test runs as root. That user then owns the
     * folder.
     *
     * @return list<string>
     */
    private function asUser(): array
    {
        if (posix_geteuid() !== 0) {
            return [];
        }
        $run = [$this->command(['setpriv']), '--reuid=65534', '--regid=65534', '--clear-groups'];
        exec(implode(' ', $run) . ' test -r ' . escapeshellarg(__FILE__), $output, $status);
        if ($status !== 0) {
            self::markTestSkipped('needs a user without rights that may read ' . __DIR__);
        }
        chown($this->folder->path, 65534);
        return $run;
    }

    private function log(): string
    {
        $path = $this->folder->path;
        return "\n" . @file_get_contents("$path/log") . @file_get_contents("$path/fpm-log");
    }

    /**
     * @param list<string> $names
     */
    private function command(array $names): string
    {
        foreach ($names as $name) {
            $path = trim((string) shell_exec('PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v ' . $name));
            if ($path !== '') {
                return $path;
            }
        }
        self::markTestSkipped("needs $names[0]");
    }
}
