<?php

/*
 * Forks with a leased Snowflake: the child's calls fail as forked, and a new Snowflake there leases another node.
 */

declare(strict_types=1);

use Polyflake\Exception\PolyflakeException;
use Polyflake\Snowflake;

require __DIR__ . '/../../autoload.php';

$ids = new Snowflake(lease: $argv[1]);
$ids->nextId();
$child = pcntl_fork();
if ($child === 0) {
    foreach ([$ids->nextId(...), $ids->lease(...)] as $call) {
        try {
            $call();
            echo "done\n";
        } catch (PolyflakeException $exception) {
            echo "{$exception->name}\n";
        }
    }
    $own = new Snowflake(lease: $argv[1]);
    $node = $own->decode($own->nextId())->node;
    echo $node !== $ids->node() ? "another node\n" : "the same node\n";
    $own->close();
    exit(0);
}
pcntl_waitpid($child, $status);
echo $ids->decode($ids->nextId())->node === $ids->node() ? "the parent continues\n" : "the parent fails\n";
$ids->close();
