<?php

/*
 * Forks twice with a counter: all three processes take numbers from the counter they inherited, and print them.
 */

declare(strict_types=1);

use Polyflake\Counter;

require __DIR__ . '/../../autoload.php';

$counter = new Counter('forked', $argv[1], step: 50);
$numbers = [$counter->nextId()];
$children = [];
for ($n = 0; $n < 2; $n++) {
    $children[] = $child = pcntl_fork();
    if ($child === 0) {
        $numbers = [];
        break;
    }
}
while (count($numbers) < 1000) {
    $numbers[] = $counter->nextId();
}
$isChild = end($children) === 0;
foreach ($isChild ? [] : $children as $child) {
    pcntl_waitpid($child, $status);
    if ($status !== 0) {
        exit(1);
    }
}
// One process at a time: concurrent writes to a pipe would be interleaved.
$lock = fopen(__FILE__, 'r');
flock($lock, LOCK_EX);
echo implode("\n", $numbers), "\n";
flock($lock, LOCK_UN);
$counter->close();
