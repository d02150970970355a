<?php

declare(strict_types=1);

namespace Polyflake\Examples;

use RuntimeException;

/**
 * Numbers for the processes of a host: each has one of its own as long as it lives, whatever requests it serves.
 *
 * A file holds a record for every number: which process has it, by its ID and the time of its start. A process that is
 * not in it takes the first number whose process is gone. That is safe for a node: a new process begins with a fresh
 * tick, after all that the dead one issued.
 *
 * The file belongs on the host's own /run (a tmpfs, empty after a boot) and to one PID namespace: containers have one
 * each. It reads /proc, so it needs Linux.
 */
final class WorkerSlot
{
    private const RECORD = 32;

    public static function take(string $file, int $slots): int
    {
        $handle = fopen($file, 'c+b') ?: throw new RuntimeException("cannot open $file");
        flock($handle, LOCK_EX) ?: throw new RuntimeException("cannot lock $file");
        $owners = array_map(trim(...), str_split((string) stream_get_contents($handle), self::RECORD));
        $self = self::process((int) getmypid());
        $slot = array_search($self, $owners, true);
        if ($slot === false) {
            $slot = 0;
            while (isset($owners[$slot]) && $owners[$slot] === self::process((int) $owners[$slot])) {
                $slot++;
            }
            if ($slot >= $slots) {
                throw new RuntimeException("all $slots numbers of $file are taken by living processes");
            }
            // In place and at once, so that a process killed here leaves the others' records alone.
            fseek($handle, $slot * self::RECORD);
            fwrite($handle, str_pad($self, self::RECORD));
        }
        fclose($handle);
        return $slot;
    }

    /**
     * The process and when it started, in ticks since boot; the ID alone comes again. Empty if there is none.
     */
    private static function process(int $id): string
    {
        $stat = @file_get_contents("/proc/$id/stat");
        if ($stat === false) {
            return '';
        }
        // The name, in parentheses, may hold anything; the start is the 20th number after it.
        return $id . ' ' . explode(' ', substr($stat, (int) strrpos($stat, ')') + 2))[19];
    }
}
