<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use RuntimeException;

/**
 * A Redis server for one test, which can be stopped and started again.
 */
final class RedisServer
{
    public readonly string $address;
    private readonly string $port;
    /** @var ?resource */
    private $process = null;

    /**
     * @param string $folder where the server keeps its data
     */
    public function __construct(private readonly string $folder)
    {
        $this->port = self::freePort();
        $this->address = "redis://127.0.0.1:$this->port/0";
        $this->start();
    }

    public function __destruct()
    {
        $this->stop();
    }

    public static function isInstalled(): bool
    {
        return trim((string) shell_exec('command -v redis-server')) !== '';
    }

    /**
     * Returns a free port below the range for outgoing connections, so it is still free when the server restarts.
     */
    public static function freePort(): string
    {
        do {
            $port = (string) random_int(30_000, 32_767);
            $listener = @stream_socket_server("tcp://127.0.0.1:$port");
        } while ($listener === false);
        fclose($listener);
        return $port;
    }

    public function start(): void
    {
        $log = ['file', "{$this->folder}/redis.log", 'a'];
        // By default, an acknowledged write may not have reached the file yet when the server is killed.
        $options = ['--port', $this->port, '--bind', '127.0.0.1', '--dir', $this->folder, '--save', '',
            '--appendonly', 'yes', '--appendfsync', 'always', '--daemonize', 'no'];
        $this->process = proc_open(['redis-server', ...$options], [1 => $log, 2 => $log], $pipes) ?: null;
        for ($waits = 0; !$client = @stream_socket_client("tcp://127.0.0.1:$this->port"); $waits++) {
            if ($waits === 3000) {
                throw new RuntimeException('redis-server did not start: ' . file_get_contents($log[1]));
            }
            usleep(10_000);
        }
        fclose($client);
    }

    public function stop(): void
    {
        if ($this->process !== null) {
            proc_terminate($this->process, 9);
            proc_close($this->process);
            $this->process = null;
        }
    }
}
