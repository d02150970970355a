<?php

declare(strict_types=1);

namespace Polyflake\Examples;

use RuntimeException;

/**
 * Numbers the processes on a host: each keeps its number for as long as it lives, whatever requests it serves.
 *
 * A file has a record for each number: the ID and start time of the process that owns it. A process that is not in the
 * file takes the first number whose owner has exited. This is safe for a node, because a new process starts with a
 * fresh tick, after every ID that the dead one issued.
 *
 * Put the file on the host's own /run (a tmpfs, empty after a boot). It works within one PID namespace, and each
 * container has its own. It reads /proc, so it needs Linux.
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
                throw new RuntimeException("all $slots numbers of $file are taken by running processes");
            }
            // One write in place, so that a process killed here does not damage other records.
            fseek($handle, $slot * self::RECORD);
            fwrite($handle, str_pad($self, self::RECORD));
        }
        fclose($handle);
        return $slot;
    }

    /**
     * The process ID, and the process's start time in ticks since boot, because IDs are reused. Empty if there is no
     * such process.
     */
    private static function process(int $id): string
    {
        $stat = @file_get_contents("/proc/$id/stat");
        if ($stat === false) {
            return '';
        }
        // The name, in parentheses, may contain anything. The start time is the 20th number after it.
        return $id . ' ' . explode(' ', substr($stat, (int) strrpos($stat, ')') + 2))[19];
    }
}
