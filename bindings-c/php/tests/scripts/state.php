<?php

// Takes IDs of the node and state file given, once a line comes in, prints them, and dies by a signal.

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
