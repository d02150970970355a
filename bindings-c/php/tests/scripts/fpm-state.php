<?php

// Answers each request with IDs, like examples/fpm/index.php, but all workers share one node.

declare(strict_types=1);

require_once __DIR__ . '/../../autoload.php';

use Polyflake\Snowflake;

$ids = new Snowflake(node: getenv('HOST_NUMBER'), maxWaitMs: 60_000, state: (string) getenv('STATE_FILE'));
echo json_encode([
    'process' => getmypid(),
    'node' => $ids->node(),
    'ids' => array_map(strval(...), [$ids->nextId(), ...$ids->nextIds(20), $ids->nextId()]),
]), "\n";
