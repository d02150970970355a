<?php

// Answers each request with IDs, like examples/fpm/index.php, but with a lease. Each worker leases one node.

declare(strict_types=1);

require_once __DIR__ . '/../../autoload.php';

use Polyflake\Snowflake;

$ids = new Snowflake(lease: (string) getenv('LEASE'));

header('Content-Type: application/json');
echo json_encode([
    'process' => getmypid(),
    'node' => $ids->node(),
    'ids' => array_map(strval(...), [$ids->nextId(), ...$ids->nextIds(20), $ids->nextId()]),
]), "\n";
