<?php

/*
 * Served by php-fpm in the prefork probes. Each request builds a generator, as is usual in PHP, and takes IDs.
 */

declare(strict_types=1);

require __DIR__ . '/probe.php';

$probe = new Probe(explode(' ', (string) getenv('PROBE')));
$left = $probe->n * $probe->parts - ((int) $_SERVER['QUERY_STRING'] - 1) * $probe->idsPerRequest();
// Each worker holds its first request until all workers have one: otherwise, a single worker could answer them all.
$folder = getenv('PROBE_FOLDER');
touch("$folder/worker-" . getmypid());
while (count(glob("$folder/worker-*") ?: []) < $probe->parts) {
    usleep(1000);
}
$part = (new Part())->take($probe->build(...), min($left, $probe->idsPerRequest()));

header('Content-Type: application/json');
echo json_encode(['ids' => $part->ids, 'refused' => $part->refused]);
