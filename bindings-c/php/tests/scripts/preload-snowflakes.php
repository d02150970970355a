<?php

/*
 * For opcache.preload: takes IDs and numbers in the master, before it forks, and tries to leave Snowflakes behind.
 */

declare(strict_types=1);

require __DIR__ . '/../../preload.php';
require __DIR__ . '/../LeftOver.php';

use Polyflake\Counter;
use Polyflake\Snowflake;
use Polyflake\Tests\LeftOver;

$folder = (string) getenv('FOLDER');
$plain = LeftOver::$ids = new Snowflake(node: 200);
LeftOver::ids();
$GLOBALS['ids'] = $plain;
$shared = new Snowflake(node: 201, maxWaitMs: 60_000, state: "$folder/state");
$counter = new Counter('preloaded', store: "sqlite://$folder/counters.db", step: 100);
$ids = [...$plain->nextIds(100), ...$shared->nextIds(100), ...$counter->nextIds(10)];
$custom = new Snowflake(node: 202, clock: static fn (): int => 1_700_000_000_000);
$custom->nextId();
file_put_contents("$folder/preloaded", json_encode(array_map(strval(...), $ids)));
