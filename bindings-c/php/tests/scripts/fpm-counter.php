<?php

// Answers each request with numbers from a counter. Nothing is closed: the worker's next request continues with the
// numbers in hand.

declare(strict_types=1);

require_once __DIR__ . '/../../autoload.php';

use Polyflake\Counter;

$counter = new Counter('fpm', store: (string) getenv('COUNTER'), step: 100_000);
$ids = [$counter->nextId(), ...$counter->nextIds(20), $counter->nextId()];

header('Content-Type: application/json');
echo json_encode(['process' => getmypid(), 'segments' => $counter->stats()->segments, 'ids' => $ids]), "\n";
