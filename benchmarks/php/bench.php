<?php

/*
 * The cost of an ID in PHP, and of decoding one: one at a time, in batches of 1,000, and with the textbook class
 * (microtime, shifts, a property for the last millisecond), round by round, as JSON Lines (benchmarks/README.md).
 *
 *     [composer install &&] php bench.php [--rounds 9]
 */

// phpcs:disable PSR1.Files.SideEffects -- a program, functions and all
declare(strict_types=1);

require_once __DIR__ . '/../../bindings-c/php/autoload.php';

use Polyflake\Internal\Core;
use Polyflake\Internal\Library;
use Polyflake\Layout;
use Polyflake\PublicIds;
use Polyflake\Snowflake;

const EPOCH_MS = 1288834974657; // of the layout twitter, as are the 10 and 12 bits below
const BATCH = 1_000; // few enough that a sequence of 12 bits does not run out in a burst
const BURSTS = 15;
const IDS_TO_CHECK = 200_000;

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

// A C call as in nextId(), with a pointer to a struct, that does almost nothing.
$ffi = Library::ffi();
$room = Core::room('polyflake_snowflake *');
$detail = Core::detail();
$options = $ffi->polyflake_options_new();
Core::set($options, 'node', '7', $detail);
Core::check($ffi->polyflake_snowflake_new($options, $room, $detail), $detail);
$snowflake = $room[0];

/**
 * A row of a table. $take returns the results of a thousand calls as an array, whose keys do not matter.
 *
 * @return array<string, mixed>
 */
function row(string $table, string $subject, callable $take, bool $makesIds = false): array
{
    $row = ['kind' => 'result', 'language' => 'PHP', 'table' => $table, 'subject' => $subject, 'rounds' => []];
    return $row + ['take' => $take, 'makes_ids' => $makesIds];
}

// Every loop is written out, since a call in between would cost as much as what is measured.
$emptyLoop = static function (): array {
    $taken = [];
    for ($n = 0; $n < BATCH; $n++) {
        $taken[] = $n;
    }
    return $taken;
};
$readClock = static function (): array {
    $taken = [];
    for ($n = 0; $n < BATCH; $n++) {
        $taken[] = (int) (microtime(true) * 1000);
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
$callsAsOfNextId = static function () use ($ffi, $snowflake): array {
    $taken = [];
    for ($n = 0; $n < BATCH; $n++) {
        $taken[] = $ffi->polyflake_snowflake_close($snowflake);
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

$emptyCall = 'empty FFI call';
$rows = [
    row('one ID', 'Polyflake nextId()', $nextId, true),
    row('one ID', 'Polyflake nextIdString()', $nextIdString, true),
    row('one ID', 'textbook class nextId()', $textbookIds, true),
    row('one ID', 'empty loop', $emptyLoop),
    row('one ID', 'microtime(true)', $readClock),
    row('one ID', $emptyCall, $emptyCalls),
    row('one ID', 'FFI call with the arguments of nextId()', $callsAsOfNextId),
    row('batch of 1,000', 'Polyflake nextIds(1000)', $nextIds, true),
    row('batch of 1,000', 'textbook class nextId(), in a loop', $textbookIds, true),
    row('batch of 1,000', 'empty loop', $emptyLoop),
    row('decode', 'Polyflake decode($id)', $decode),
    row('decode', 'textbook class parse($id)', $parseTextbook),
    row('decode', $emptyCall, $emptyCalls),
    row('public ID, encode', 'Polyflake PublicIds encode($id)', $encodePublic),
    row('public ID, encode', $emptyCall, $emptyCalls),
    row('public ID, decode', 'Polyflake PublicIds decode($text)', $decodePublic),
    row('public ID, decode', $emptyCall, $emptyCalls),
];

$peer = 'godruoyi/php-snowflake';
$composer = json_decode((string) file_get_contents(__DIR__ . '/composer.json'), true, flags: JSON_THROW_ON_ERROR);
$version = $composer['require'][$peer];
if (is_file(__DIR__ . '/vendor/autoload.php')) {
    require_once __DIR__ . '/vendor/autoload.php';
    $godruoyi = new \Godruoyi\Snowflake\Snowflake();
    $parseId = static function () use ($godruoyi, $made): array {
        $taken = [];
        foreach ($made as $id) {
            $taken[] = $godruoyi->parseId((string) $id, true)['timestamp'];
        }
        return $taken;
    };
    $rows[] = row('decode', "$peer parseId(\$id, true)", $parseId);
} else {
    $why = 'is not installed';
    $missing = ['kind' => 'missing', 'language' => 'PHP', 'subject' => $peer, 'version' => $version, 'why' => $why];
    echo json_encode($missing, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES), "\n";
}

function unixMs(): int
{
    return (int) floor(microtime(true) * 1000);
}

/** Returns at the start of a millisecond of the wall clock. */
function waitForMs(): void
{
    $start = unixMs();
    while (unixMs() === $start) {
    }
}

/** @return float ns per ID */
function timeBursts(callable $take): float
{
    $took = 0;
    for ($burst = 0; $burst < BURSTS; $burst++) {
        waitForMs();
        $start = hrtime(true);
        $taken = $take();
        $took += hrtime(true) - $start;
    }
    return $took / (BURSTS * BATCH);
}

/**
 * Takes IDs as fast as possible; counts the repeated ones, and how far their time was ahead of the clock.
 *
 * @return array{repeated: int, ids: int, ahead_ms: int}
 */
function checkIds(callable $take): array
{
    $seen = [];
    $ahead = 0;
    for ($n = 0; $n < IDS_TO_CHECK; $n += BATCH) {
        $taken = $take();
        $ahead = max($ahead, ((int) end($taken) >> 22) + EPOCH_MS - unixMs());
        foreach ($taken as $id) {
            $seen[$id] = true;
        }
    }
    return ['repeated' => IDS_TO_CHECK - count($seen), 'ids' => IDS_TO_CHECK, 'ahead_ms' => $ahead];
}

$given = array_search('--rounds', $argv, true);
$rounds = $given === false ? 9 : (int) $argv[$given + 1];
for ($round = 1; $round <= $rounds; $round++) {
    fwrite(STDERR, "PHP: round $round of $rounds\n");
    foreach ($rows as $n => $row) {
        $rows[$n]['rounds'][] = timeBursts($row['take']);
    }
}
fwrite(STDERR, "PHP: checking for repeated IDs\n");
foreach ($rows as $row) {
    if ($row['makes_ids']) {
        $row = array_merge($row, checkIds($row['take']));
    }
    unset($row['take'], $row['makes_ids']);
    echo json_encode($row, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES), "\n";
}
