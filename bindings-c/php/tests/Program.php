<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use RuntimeException;

/**
 * Runs PHP in a new process.
 */
final class Program
{
    private function __construct(
        public readonly string $output,
        /** As in a shell: 128 or more means a signal. */
        public readonly int $status,
    ) {
    }

    /**
     * @param list<string> $arguments PHP's options, the script and its arguments
     * @param array<string, ?string> $environment variables to add; null removes one
     */
    public static function run(array $arguments, array $environment = []): self
    {
        $command = implode(' ', array_map(escapeshellarg(...), [PHP_BINARY, '-d', 'display_errors=1', ...$arguments]));
        $environment = array_filter($environment + getenv(), static fn (?string $value): bool => $value !== null);
        // The shell turns a signal into an exit status.
        $shell = ['/bin/sh', '-c', "$command 2>&1; exit \$?"];
        $process = proc_open($shell, [1 => ['pipe', 'w']], $pipes, null, $environment);
        if ($process === false) {
            throw new RuntimeException("cannot run $command");
        }
        $output = (string) stream_get_contents($pipes[1]);
        return new self($output, proc_close($process));
    }
}
