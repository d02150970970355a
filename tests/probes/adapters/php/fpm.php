<?php

/*
 * What php-fpm serves in the prefork probes: a request builds a generator, as PHP's requests do, and takes IDs.
 */

declare(strict_types=1);

require __DIR__ . '/probe.php';

$probe = new Probe(explode(' ', (string) getenv('PROBE')));
$left = $probe->n * $probe->parts - ((int) $_SERVER['QUERY_STRING'] - 1) * Probe::IDS_PER_REQUEST;
$part = (new Part())->take($probe->build(...), min($left, Probe::IDS_PER_REQUEST));
// What else a request does: meanwhile other workers answer others.
usleep(20_000);

header('Content-Type: application/json');
echo json_encode(['process' => getmypid(), 'ids' => $part->ids, 'refused' => $part->refused]);
