<?php

/*
 * Code shared by polyflake_adapter.php and the script that its php-fpm serves.
 */

declare(strict_types=1);

use Polyflake\Examples\WorkerSlot;
use Polyflake\Exception\PolyflakeException;
use Polyflake\Snowflake;

require getenv('POLYFLAKE_PHP') ?: __DIR__ . '/../../../../bindings-c/php/autoload.php';
require __DIR__ . '/../../../../bindings-c/php/examples/fpm/WorkerSlot.php';

/** The runner's request, and the options for the generator. */
final class Probe
{
    private const LAYOUTS = [1 => 'twitter', 10 => 'sonyflake', 1000 => 'cosid-second'];

    public readonly string $situation;
    public readonly int $n;
    public readonly int $parts;
    public readonly int $behindMs;
    public readonly int $tickMs;
    /** @var array<string, int|string> */
    public readonly array $options;

    /** @param list<string> $arguments */
    public function __construct(public readonly array $arguments)
    {
        $given = [];
        foreach (array_slice($arguments, 1) as $argument) {
            [$name, $value] = explode('=', $argument, 2);
            $given[$name] = ctype_digit($value) ? (int) $value : $value;
        }
        $this->situation = $arguments[0] ?? '';
        $this->n = $given['n'] ?? 1;
        $this->parts = $given['parts'] ?? 1;
        $this->behindMs = $given['behind_ms'] ?? 0;
        $this->tickMs = $given['tick_ms'] ?? 1;
        // PHP cannot close the gate, which is a file descriptor. The next process starts when this one exits.
        unset($given['n'], $given['parts'], $given['behind_ms'], $given['tick_ms'], $given['gate']);
        $this->options = $given;
    }

    /** Small enough that every worker of a server is given a request. */
    public function idsPerRequest(): int
    {
        return min(500, $this->n);
    }

    public function build(): Snowflake
    {
        $options = [];
        foreach ($this->options as $name => $value) {
            $options[lcfirst(str_replace('_', '', ucwords($name, '_')))] = $value;
        }
        if ($this->situation === 'rollback') {
            // PHP loads libpolyflake with RTLD_DEEPBIND, which bypasses libfaketime, but microtime returns the changed
            // time.
            $options['clock'] = static fn (): int => (int) (microtime(true) * 1000);
        }
        if (!isset($options['lease'])) {
            $options += ['node' => $this->situation === 'prefork' ? self::ownNode() : 7];
        }
        return new Snowflake(...($options + [
            // 64 IDs per tick, so that every language can use them up.
            'layout' => $this->situation === 'exhaustion' ? 'yitter' : self::LAYOUTS[$this->tickMs],
            // On a busy machine, a process may wait a long time for its turn.
            'maxWaitMs' => 60_000,
        ]));
    }

    /** As the README requires, each php-fpm worker has a different node. */
    private static function ownNode(): int
    {
        return WorkerSlot::take(getenv('PROBE_FOLDER') . '/slots', slots: 32);
    }
}

/** The IDs that one process or request took, and the name of the error that stopped it, if any. */
final class Part
{
    /** @param list<int> $ids */
    public function __construct(public array $ids = [], public ?string $refused = null)
    {
    }

    /** @param callable(): Snowflake $build */
    public function take(callable $build, int $n): self
    {
        try {
            $ids = $build();
            for ($taken = 0; $taken < $n; $taken++) {
                $this->ids[] = $ids->nextId();
            }
        } catch (PolyflakeException $exception) {
            $this->refused = $exception->name;
        }
        return $this;
    }
}
