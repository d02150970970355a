<?php

// Answers each request with IDs and numbers from the node and counter that tests/scripts/preload-snowflakes.php used in
// the master.

declare(strict_types=1);

use Polyflake\Counter;
use Polyflake\Exception\ForkedException;
use Polyflake\Snowflake;
use Polyflake\Tests\LeftOver;

if (isset($GLOBALS['ids']) || LeftOver::$ids !== null || LeftOver::ids() !== null) {
    exit('an object of the master is left');
}
try {
    exit('the node of the master: ' . (new Snowflake(node: 200))->nextId());
} catch (ForkedException) {
}
$folder = (string) getenv('FOLDER');
$shared = new Snowflake(node: 201, maxWaitMs: 60_000, state: "$folder/state");
$counter = new Counter('preloaded', store: "sqlite://$folder/counters.db", step: 100);
$ids = [...$shared->nextIds(100), ...$counter->nextIds(10)];
header('Content-Type: application/json');
echo json_encode([
    'process' => getmypid(),
    'node' => $shared->node(),
    'ids' => array_map(strval(...), $ids),
]), "\n";
