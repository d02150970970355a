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

const MADE = 'ns per ID';
const DECODED = 'ns per decoded ID';
const CALL = 'ns per call';

/**
 * A row of a table. $take returns the results of a thousand calls as an array, whose keys do not matter.
 *
 * @return array<string, mixed>
 */
function row(
    string $table,
    string $role,
    string $subject,
    string $version,
    string $note,
    callable $take,
    string $unit = MADE,
): array {
    return [
        'kind' => 'result',
        'language' => 'PHP',
        'table' => $table,
        'subject' => $subject,
        'version' => $version,
        'role' => $role,
        'unit' => $unit,
        'rounds' => [],
        'repeated' => null,
        'ids' => null,
        'ahead_ms' => null,
        'reads_clock' => $role !== 'floor',
        'note' => $note,
        'take' => $take,
    ];
}

/**
 * A row of ours, with the floor that it is over, and its targets.
 *
 * @param list<array<string, int|float|string>> $targets
 * @return array<string, mixed>
 */
function ours(
    string $table,
    string $subject,
    string $floor,
    array $targets,
    callable $take,
    string $unit = MADE,
    string $note = '',
): array {
    $manifest = (string) file_get_contents(__DIR__ . '/../../Cargo.toml');
    $version = preg_match('/^version = "(.+)"/m', $manifest, $match) === 1 ? $match[1] : '';
    $row = row($table, 'ours', $subject, $version, $note, $take, $unit);
    return $row + ['floor' => [$floor], 'targets' => $targets];
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

$class = 'textbook class nextId()';
$own = 'plain PHP, in benchmarks/php/bench.php';
$php = 'PHP ' . PHP_VERSION;
$emptyCall = 'empty FFI call';
$atMost = static fn (float $limit, string $subject): array =>
    ['what' => 'ratio to', 'subject' => $subject, 'at_most' => $limit];
$most500 = [['what' => 'value', 'at_most' => 500]];
$third = [['what' => 'ratio', 'at_most' => 0.3333]];
$rows = [
    ours('one ID', 'Polyflake nextId()', $emptyCall, [$atMost(1.1, $class)], $nextId),
    ours(
        'one ID',
        'Polyflake nextIdString()',
        $emptyCall,
        [$atMost(2, 'Polyflake nextId()')],
        $nextIdString,
        note: 'a decimal string',
    ),
    row('one ID', 'peer', $class, '', $own, $textbookIds),
    row('one ID', 'floor', 'empty loop', $php, 'as all here, it appends to an array', $emptyLoop),
    row('one ID', 'floor', 'microtime(true)', $php, '', $readClock),
    row('one ID', 'floor', $emptyCall, $php, '', $emptyCalls),
    row('one ID', 'floor', 'FFI call with the arguments of nextId()', $php, '', $callsAsOfNextId),
    ours('batch of 1,000', 'Polyflake nextIds(1000)', 'empty loop', $third, $nextIds),
    row('batch of 1,000', 'peer', "$class, in a loop", '', 'no batch call', $textbookIds),
    row('batch of 1,000', 'floor', 'empty loop', $php, 'appends to an array', $emptyLoop),
    ours('decode', 'Polyflake decode($id)', $emptyCall, [], $decode, DECODED),
    row('decode', 'peer', 'textbook class parse($id)', '', $own, $parseTextbook, DECODED),
    row('decode', 'floor', $emptyCall, $php, '', $emptyCalls, DECODED),
    ours('public ID, encode', 'Polyflake PublicIds encode($id)', $emptyCall, $most500, $encodePublic, CALL),
    row('public ID, encode', 'floor', $emptyCall, $php, '', $emptyCalls, CALL),
    ours('public ID, decode', 'Polyflake PublicIds decode($text)', $emptyCall, $most500, $decodePublic, CALL),
    row('public ID, decode', 'floor', $emptyCall, $php, '', $emptyCalls, CALL),
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
    $rows[] = row('decode', 'peer', "$peer parseId(\$id, true)", $version, '', $parseId, DECODED);
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
    if ($row['role'] !== 'floor' && $row['unit'] === MADE) {
        $row = array_merge($row, checkIds($row['take']));
    }
    unset($row['take']);
    echo json_encode($row, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES), "\n";
}
