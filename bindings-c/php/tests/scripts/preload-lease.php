<?php

/*
 * For opcache.preload: leases a node in the master, before it forks.
 */

declare(strict_types=1);

require __DIR__ . '/../../preload.php';

(new Polyflake\Snowflake(lease: (string) getenv('LEASE')))->nextId();
