<?php

/*
 * Clocks that destroy the Snowflake whose call is reading them: explicitly, and through a Fiber that stays suspended
 * in a clock.
 */

declare(strict_types=1);

require __DIR__ . '/../../autoload.php';

use Polyflake\Snowflake;

const MS = 1656432460105;

$outcome = static function (callable $call): string {
    try {
        $result = $call();
        return is_object($result) ? $result::class : json_encode($result);
    } catch (Throwable $thrown) {
        $previous = $thrown->getPrevious();
        return $thrown::class . ($previous === null ? '' : ", {$previous->getMessage()}");
    }
};
$calls = [
    'nextId' => static fn (Snowflake $ids) => $ids->nextId(),
    'tryNextId' => static fn (Snowflake $ids) => $ids->tryNextId(),
    'nextIdString' => static fn (Snowflake $ids) => $ids->nextIdString('base62'),
    'nextIds' => static fn (Snowflake $ids) => $ids->nextIds(1000),
    'stats' => static fn (Snowflake $ids) => $ids->stats(),
];
// Overwrites the memory that a freed Snowflake would have occupied.
$reuse = static function (): void {
    $texts = [];
    for ($size = 8; $size < 2048; $size += 8) {
        $texts[] = FFI::new("char[$size]", false, true);
        FFI::memset(end($texts), 0x55, $size);
    }
    array_map(FFI::free(...), $texts);
};
foreach ($calls as $name => $call) {
    foreach (['returns', 'throws', 'makes another'] as $end) {
        $other = null;
        $ids = new Snowflake(node: 7, clock: static function () use (&$ids, &$other, $end, $reuse): int {
            $ids->__destruct();
            $reuse();
            if ($end === 'throws') {
                throw new Exception('mine');
            }
            if ($end === 'makes another') {
                // The new Snowflake must not take over the C function of the clock that is being read.
                $other ??= new Snowflake(node: 8, clock: static fn (): int => MS + 1000);
            }
            return MS;
        });
        echo "$name $end: ", $outcome(static fn () => $call($ids)), ', ', $outcome($ids->nextId(...));
        echo $other === null ? '' : ', ' . $other->decode($other->nextId())->timestampMs - MS, "\n";
    }
}
$left = new Snowflake(node: 7, clock: static function (): int {
    try {
        Fiber::suspend();
    } finally {
        // At exit, PHP destroys the Fiber after the Snowflake; this return ends the call as if nothing had happened.
        return MS;
    }
});
$fiber = new Fiber(static function () use ($outcome, $left): void {
    echo 'left: ', $outcome($left->stats(...)), "\n";
});
$fiber->start();
