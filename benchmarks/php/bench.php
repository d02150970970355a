<?php

/*
 * The cost of an ID in PHP, and of decoding one: singly, in batches of 1,000, and with the textbook class (microtime,
 * shifts, a property for the last millisecond). ../harness.py tells this program what to measure.
 */

// phpcs:disable PSR1.Files.SideEffects -- a program, functions and all
declare(strict_types=1);

require_once __DIR__ . '/../../bindings-c/php/autoload.php';

use Polyflake\Internal\Library;
use Polyflake\Layout;
use Polyflake\PublicIds;
use Polyflake\Snowflake;

const EPOCH_MS = 1288834974657; // of the layout twitter, as are the 10 and 12 bits below
const BATCH = 1_000; // few enough that a 12-bit sequence does not run out in a burst
const BURSTS = 15;

$textbook = new class (7) {
    private int $lastMs = -1;
    private int $sequence = 0;

    public function __construct(private int $worker)
    {
    }

    public function nextId(): int
    {
        $now = (int) (microtime(true) * 1000);
        if ($now === $this->lastMs) {
            $this->sequence = ($this->sequence + 1) & 0xFFF;
            if ($this->sequence === 0) {
                while ($now <= $this->lastMs) {
                    $now = (int) (microtime(true) * 1000);
                }
            }
        } else {
            $this->sequence = 0;
        }
        $this->lastMs = $now;
        return ($now - EPOCH_MS) << 22 | $this->worker << 12 | $this->sequence;
    }

    /** @return array{timestamp: int, worker: int, sequence: int} */
    public function parse(int $id): array
    {
        return ['timestamp' => ($id >> 22) + EPOCH_MS, 'worker' => $id >> 12 & 0x3FF, 'sequence' => $id & 0xFFF];
    }
};
$ids = new Snowflake(node: 7);
$layout = new Layout('twitter');
$made = $ids->nextIds(BATCH);
$orders = new PublicIds('pfk_10kvEGTqNtUTXFUlMnM4wIa', 'order');
$shown = $orders->encodeAll($made);

$ffi = Library::ffi();

// Each returns the results of a thousand calls as an array, whose keys do not matter. Every loop is written out, since
// an extra call would cost as much as the one being measured.
$emptyLoop = static function (): array {
    $taken = [];
    for ($n = 0; $n < BATCH; $n++) {
        $taken[] = $n;
    }
    return $taken;
};
$emptyCalls = static function () use ($ffi): array {
    $taken = [];
    for ($n = 0; $n < BATCH; $n++) {
        $taken[] = $ffi->polyflake_abi_version();
    }
    return $taken;
};
$textbookIds = static function () use ($textbook): array {
    $taken = [];
    for ($n = 0; $n < BATCH; $n++) {
        $taken[] = $textbook->nextId();
    }
    return $taken;
};
$nextId = static function () use ($ids): array {
    $taken = [];
    for ($n = 0; $n < BATCH; $n++) {
        $taken[] = $ids->nextId();
    }
    return $taken;
};
$nextIdString = static function () use ($ids): array {
    $taken = [];
    for ($n = 0; $n < BATCH; $n++) {
        $taken[] = $ids->nextIdString();
    }
    return $taken;
};
$nextIds = static fn (): array => $ids->nextIds(BATCH);

$decode = static function () use ($layout, $made): array {
    $taken = [];
    foreach ($made as $id) {
        $taken[] = $layout->decode($id)->timestampMs;
    }
    return $taken;
};
$parseTextbook = static function () use ($textbook, $made): array {
    $taken = [];
    foreach ($made as $id) {
        $taken[] = $textbook->parse($id)['timestamp'];
    }
    return $taken;
};
$encodePublic = static function () use ($orders, $made): array {
    $taken = [];
    foreach ($made as $id) {
        $taken[] = $orders->encode($id);
    }
    return $taken;
};
$decodePublic = static function () use ($orders, $shown): array {
    $taken = [];
    foreach ($shown as $text) {
        $taken[] = $orders->decode($text);
    }
    return $taken;
};

$parseId = static function () use ($made): array {
    static $godruoyi = null;
    if ($godruoyi === null) {
        require_once __DIR__ . '/vendor/autoload.php';
        $godruoyi = new \Godruoyi\Snowflake\Snowflake();
    }
    $taken = [];
    foreach ($made as $id) {
        $taken[] = $godruoyi->parseId((string) $id, true)['timestamp'];
    }
    return $taken;
};

$rows = [
    'one ID' => [
        'Polyflake nextId()' => $nextId,
        'Polyflake nextIdString()' => $nextIdString,
        'textbook class nextId()' => $textbookIds,
        'empty FFI call' => $emptyCalls,
    ],
    'batch of 1,000' => [
        'Polyflake nextIds(1000)' => $nextIds,
        'textbook class nextId(), in a loop' => $textbookIds,
        'empty loop' => $emptyLoop,
    ],
    'decode' => [
        'Polyflake decode($id)' => $decode,
        'textbook class parse($id)' => $parseTextbook,
        'godruoyi/php-snowflake parseId($id, true)' => $parseId,
        'empty FFI call' => $emptyCalls,
    ],
    'public ID, encode' => ['Polyflake PublicIds encode($id)' => $encodePublic, 'empty FFI call' => $emptyCalls],
    'public ID, decode' => ['Polyflake PublicIds decode($text)' => $decodePublic, 'empty FFI call' => $emptyCalls],
];
$makeIds = [$nextId, $nextIdString, $textbookIds, $nextIds];

function unixMs(): int
{
    return (int) floor(microtime(true) * 1000);
}

/** @return float ns per ID, in bursts that start at the beginning of a wall-clock millisecond */
function timeBursts(callable $take): float
{
    $took = 0;
    for ($burst = 0; $burst < BURSTS; $burst++) {
        for ($now = unixMs(); unixMs() === $now;) {
        }
        $start = hrtime(true);
        $taken = $take();
        $took += hrtime(true) - $start;
    }
    return $took / (BURSTS * BATCH);
}

if ($argc !== 3) {
    foreach ($rows as $table => $subjects) {
        foreach ($subjects as $subject => $take) {
            echo "$table\t$subject\n";
        }
    }
    exit;
}
$take = $rows[$argv[1]][$argv[2]];
while ($line = fgets(STDIN)) {
    $words = explode(' ', trim($line));
    if ($words[0] === 'round') {
        echo timeBursts($take), "\n";
    } elseif (in_array($take, $makeIds, true)) {
        $all = '';
        for ($n = 0; $n < (int) $words[1]; $n += BATCH) {
            $taken = array_values($take());
            $all .= pack('q*', ...array_map(intval(...), $taken), ...[(int) (microtime(true) * 1e6)]);
        }
        file_put_contents($words[2], $all);
        echo BATCH, " 1\n\n";
    } else {
        echo "0 1\n";
    }
}
