<?php

/*
 * Takes IDs during a storm of signals whose handler takes IDs from the same Snowflake. Prints how many IDs the program
 * took, how many the handler took, and how many are repeated.
 */

declare(strict_types=1);

require __DIR__ . '/../../autoload.php';

$ids = new Polyflake\Snowflake(node: 3, layout: 'timestamp:39|node:4|sequence:20@1700000000000/1ms');
$byHandler = [];
pcntl_async_signals(true);
pcntl_signal(SIGUSR1, static function () use ($ids, &$byHandler): void {
    $byHandler[] = $ids->nextId();
});
$storm = proc_open(['/bin/sh', '-c', 'while kill -USR1 "$0" 2>/dev/null; do :; done', (string) getmypid()], [], $pipes);
$byProgram = [];
while (count($byHandler) < 3000) {
    $byProgram[] = $ids->nextId();
    $byProgram[] = $ids->tryNextId();
    $byProgram[] = (int) $ids->nextIdString();
    array_push($byProgram, ...$ids->nextIds(5));
}
pcntl_signal(SIGUSR1, SIG_IGN);
proc_terminate($storm);
$all = array_merge($byProgram, $byHandler);
printf("%d %d %d\n", count($byProgram), count($byHandler), count($all) - count(array_flip($all)));
