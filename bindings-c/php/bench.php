<?php

/*
 * What an ID costs in PHP: one at a time, in batches of 1,000, and by the class that textbooks show (microtime, shifts,
 * a property for the last millisecond), beside FFI calls that do nothing and an empty loop. Prints medians of
 * interleaved rounds.
 *
 *     php bench.php [ROUNDS]       (11)
 *
 * The layout's sequence is wide enough that nobody waits for the next millisecond.
 */

declare(strict_types=1);

require_once __DIR__ . '/autoload.php';

use Polyflake\Internal\Core;
use Polyflake\Internal\Library;
use Polyflake\Snowflake;

const EPOCH_MS = 1735689600000;
const IDS = 50_000;
const BATCH = 1_000;

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
            $this->sequence = ($this->sequence + 1) & 0xFFFFF;
            if ($this->sequence === 0) {
                while ($now <= $this->lastMs) {
                    $now = (int) (microtime(true) * 1000);
                }
            }
        } else {
            $this->sequence = 0;
        }
        $this->lastMs = $now;
        return ($now - EPOCH_MS) << 24 | $this->worker << 20 | $this->sequence;
    }
};
$ids = new Snowflake(node: 7, layout: 'timestamp:39|worker:4|sequence:20@' . EPOCH_MS . '/1ms', maxWaitMs: 1000);

// A C call as nextId() makes it, with two structs and a number behind pointers, that does next to nothing.
$ffi = Library::ffi();
$room = Core::room('polyflake_snowflake *');
$number = Core::room('uint64_t');
$detail = Core::detail();
$options = $ffi->polyflake_options_new();
$ffi->polyflake_options_set_detailed($options, 'node', '7', $detail);
$ffi->polyflake_snowflake_new_detailed($options, $detail, $room);
$snowflake = $room[0];

$rows = [
    'empty loop' => static function (): void {
        for ($n = 0; $n < IDS; $n++) {
        }
    },
    'empty FFI call' => static function () use ($ffi): void {
        for ($n = 0; $n < IDS; $n++) {
            $ffi->polyflake_abi_version();
        }
    },
    'FFI call as of nextId()' => static function () use ($ffi, $snowflake, $detail, $number): void {
        for ($n = 0; $n < IDS; $n++) {
            $ffi->polyflake_snowflake_node($snowflake, $detail, $number);
        }
    },
    'textbook class, nextId()' => static function () use ($textbook): void {
        for ($n = 0; $n < IDS; $n++) {
            $textbook->nextId();
        }
    },
    'Polyflake, nextId()' => static function () use ($ids): void {
        for ($n = 0; $n < IDS; $n++) {
            $ids->nextId();
        }
    },
    'Polyflake, nextIdString()' => static function () use ($ids): void {
        for ($n = 0; $n < IDS; $n++) {
            $ids->nextIdString();
        }
    },
    'Polyflake, nextIds(1000)' => static function () use ($ids): void {
        for ($n = 0; $n < IDS; $n += BATCH) {
            $ids->nextIds(BATCH);
        }
    },
];

$rounds = max(9, (int) ($argv[1] ?? 11));
$times = array_fill_keys(array_keys($rows), []);
for ($round = 0; $round < $rounds; $round++) {
    foreach ($rows as $name => $run) {
        $start = hrtime(true);
        $run();
        $times[$name][] = (hrtime(true) - $start) / IDS;
    }
}
$medians = array_map(static function (array $all): float {
    sort($all);
    return $all[intdiv(count($all), 2)];
}, $times);

printf("PHP %s, medians of %d rounds of %s IDs\n", PHP_VERSION, $rounds, number_format(IDS));
foreach ($medians as $name => $median) {
    $ratio = $medians['textbook class, nextId()'] / $median;
    $beside = str_starts_with($name, 'Polyflake') ? sprintf('%6.2f times as fast as the textbook class', $ratio) : '';
    echo rtrim(sprintf('%-26s %8.1f ns  %s', $name, $median, $beside)), "\n";
}
