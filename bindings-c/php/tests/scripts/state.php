<?php

// Waits for a line of input, takes IDs from the given node and state file, prints them, and is killed by a signal.

declare(strict_types=1);

use Polyflake\Snowflake;

require __DIR__ . '/../../autoload.php';

$ids = new Snowflake(node: (int) $argv[1], maxWaitMs: 60_000, state: $argv[2]);
echo "ready\n";
fgets(STDIN);
$taken = [];
for ($round = 0; $round < 200; $round++) {
    array_push($taken, $ids->nextId(), ...$ids->nextIds(50));
}
echo implode(' ', $taken), "\n";
posix_kill((int) getmypid(), 9);
