<?php

declare(strict_types=1);

require __DIR__ . '/../../autoload.php';

register_shutdown_function(static function (): void {
    echo "shutdown function\n";
});
$ids = new Polyflake\Snowflake(node: 7, clock: static fn () => exit("the clock exits\n"));
$id = $ids->nextId();
echo "an ID: $id\n";
