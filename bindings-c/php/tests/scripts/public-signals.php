<?php

/*
 * Encodes and decodes during a storm of signals whose handler does the same with the same object. Prints how many
 * signals arrived, and how many results belonged to another call.
 */

declare(strict_types=1);

require __DIR__ . '/../../autoload.php';

$orders = new Polyflake\PublicIds('pfk_10kvEGTqNtUTXFUlMnM4wIa', 'order');
[$one, $two] = $orders->encodeAll([1, 2]);
$signals = 0;
$wrong = 0;
pcntl_async_signals(true);
pcntl_signal(SIGUSR1, static function () use ($orders, $two, &$signals, &$wrong): void {
    $signals++;
    $wrong += (int) ($orders->decode($two) !== 2) + (int) ($orders->encode(2) !== $two);
});
$storm = proc_open(['/bin/sh', '-c', 'while kill -USR1 "$0" 2>/dev/null; do :; done', (string) getmypid()], [], $pipes);
while ($signals < 3000) {
    $wrong += (int) ($orders->decode($one) !== 1) + (int) ($orders->encode(1) !== $one);
}
pcntl_signal(SIGUSR1, SIG_IGN);
proc_terminate($storm);
printf("%d %d\n", $signals, $wrong);
