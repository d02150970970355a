<?php

// Prints what a child made by pcntl_fork may do with what it inherited, and whether the parent goes on.

declare(strict_types=1);

use Polyflake\Exception\PolyflakeException;
use Polyflake\Snowflake;

require __DIR__ . '/../../autoload.php';

$builtin = new Snowflake(node: 920);
$own = new Snowflake(node: 920, clock: static fn (): int => 1656432460105);
$first = $builtin->nextId();
$ownFirst = $own->nextId();

$child = pcntl_fork();
if ($child === 0) {
    $calls = [
        static fn () => $builtin->nextId(),
        static fn () => $builtin->nextIds(100),
        static fn () => $own->nextId(),
        static fn () => new Snowflake(node: 920),
        static fn () => (new Snowflake(node: 921))->nextId(),
        static fn () => $builtin->decode($first),
    ];
    foreach ($calls as $call) {
        try {
            $call();
            echo "done\n";
        } catch (PolyflakeException $refused) {
            echo "{$refused->name}\n";
        }
    }
    exit(0);
}
pcntl_waitpid($child, $status);
echo $builtin->nextId() > $first && $own->nextId() === $ownFirst + 1 ? "parent goes on\n" : "parent is disturbed\n";
