<?php

/*
 * Prints what opcache.preload has loaded for this program, which loads nothing itself.
 */

declare(strict_types=1);

$classes = opcache_get_status()['preload_statistics']['classes'] ?? [];
$ours = array_filter($classes, static fn (string $class): bool => str_starts_with($class, 'Polyflake\\'));
echo count($ours), ' classes, ';
try {
    FFI::scope('Polyflake');
} catch (FFI\Exception) {
    echo 'no ';
}
echo 'scope ', (new Polyflake\Snowflake(node: 7))->node(), "\n";
