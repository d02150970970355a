<?php

// Prints the outcome of a forked child's calls to the objects it inherited, and whether the parent can continue.

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
        } catch (PolyflakeException $exception) {
            echo "{$exception->name}\n";
        }
    }
    exit(0);
}
pcntl_waitpid($child, $status);
echo $builtin->nextId() > $first && $own->nextId() === $ownFirst + 1 ? "the parent continues\n" : "the parent fails\n";
