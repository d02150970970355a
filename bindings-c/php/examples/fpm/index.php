<?php

/*
 * Answers each request with IDs. The node is HOST_NUMBER (0 to 31, from the pool's env[HOST_NUMBER]) and the worker's
 * slot on that host, so no two processes share a node.
 */

declare(strict_types=1);

require_once __DIR__ . '/../../autoload.php';
require_once __DIR__ . '/WorkerSlot.php';

use Polyflake\Examples\WorkerSlot;
use Polyflake\Snowflake;

$slots = getenv('WORKER_SLOTS') ?: '/run/polyflake-worker-slots';
$ids = new Snowflake(node: [
    'datacenter' => getenv('HOST_NUMBER'),
    'worker' => WorkerSlot::take($slots, slots: 32),
]);

header('Content-Type: application/json');
echo json_encode([
    'process' => getmypid(),
    'node' => $ids->node(),
    // IDs are sent as strings, because JavaScript numbers cannot hold them exactly.
    'ids' => array_map(strval(...), [$ids->nextId(), ...$ids->nextIds(20), $ids->nextId()]),
]), "\n";
