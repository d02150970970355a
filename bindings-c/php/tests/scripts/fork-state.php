<?php

// Prints the IDs that a process and its forked child took from a Snowflake with a state file, one per line.

declare(strict_types=1);

use Polyflake\Snowflake;

require __DIR__ . '/../../autoload.php';

$ids = new Snowflake(node: 940, maxWaitMs: 60_000, state: $argv[1]);
echo $ids->nextId(), "\n";
$child = pcntl_fork();
$own = new Snowflake(node: 940, maxWaitMs: 60_000, state: $argv[1]);
$taken = [...$ids->nextIds(1000), $ids->nextId(), $own->nextId()];
if ($child !== 0) {
    pcntl_waitpid($child, $status);
}
echo implode("\n", $taken), "\n";
