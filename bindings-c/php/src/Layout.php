<?php

declare(strict_types=1);

namespace Polyflake;

use DateTimeImmutable;
use DateTimeInterface;
use FFI;
use FFI\CData;
use Polyflake\Internal\Core;
use Polyflake\Internal\LayoutPointer;
use Polyflake\Internal\Library;
use Stringable;
use WeakMap;

/**
 * What the bits of an ID mean. A value: it never changes, two are equal (== or equals()) where they mean the same, and
 * it can be cloned and serialized.
 *
 *     $layout = new Layout('discord');
 *     $layout->decode(175928847299117063)->fields['worker']; // 1
 *     $from = $layout->minId(new DateTimeImmutable('2016-04-30')); // WHERE id >= $from: all IDs since then
 *
 * IDs are ints; those with the top bit set, which only a layout of 64 bits has, are decimal strings.
 */
final class Layout implements Stringable
{
    /** The layout's text, which parses back. */
    public readonly string $text;
    /** The instant of tick 0, in Unix ms. */
    public readonly int $epochMs;
    /** How long a tick lasts, in ms. */
    public readonly int $tickMs;
    /** The layout's last instant, in Unix ms. */
    public readonly int $endsAtMs;
    /** How many IDs one node can issue in a tick. */
    public readonly int $idsPerTick;
    /** How many nodes the layout tells apart. */
    public readonly int $nodes;
    /** The width of all fields together. */
    public readonly int $totalBits;
    /** The width of the timestamp. */
    public readonly int $timestampBits;
    /** How many bits stand below the timestamp. */
    public readonly int $timestampShift;
    /** The width of the sequence. */
    public readonly int $sequenceBits;
    /** How many bits stand below the sequence. */
    public readonly int $sequenceShift;
    /** The width of all node fields together. */
    public readonly int $nodeBits;
    /** @var list<Field> all fields from the highest down */
    public readonly array $fields;

    /**
     * The library's layouts. They are no property, so that == compares values alone.
     *
     * @var ?WeakMap<self, LayoutPointer>
     */
    private static ?WeakMap $pointers = null;

    /**
     * @param string $layout a preset's name (presets() lists them), or a text such as
     *     "timestamp:41|worker:10|sequence:12@1288834974657/1ms": fields from the highest bit down, the epoch in Unix
     *     ms, the tick as Nms or Ns
     * @throws Exception\InvalidLayoutException for a layout that cannot work
     * @throws Exception\UnknownLayoutException for a name that is no preset's
     */
    public function __construct(string $layout)
    {
        $pointer = new LayoutPointer($layout);
        $this->text = self::textOf($pointer->pointer);
        $this->readProperties($pointer->pointer);
        self::$pointers ??= new WeakMap();
        self::$pointers[$this] = $pointer;
    }

    /**
     * The layout of a Snowflake.
     *
     * @internal
     */
    public static function fromPointer(CData $pointer): self
    {
        return new self(self::textOf($pointer));
    }

    /**
     * The names of all presets.
     *
     * @return list<string>
     */
    public static function presets(): array
    {
        $names = [];
        $count = Library::ffi()->polyflake_preset_count();
        for ($index = 0; $index < $count; $index++) {
            $names[] = Library::ffi()->polyflake_preset_name($index);
        }
        return $names;
    }

    /**
     * Takes an ID apart.
     *
     * @param int|string $id an int or a decimal string
     * @throws Exception\InvalidIdException for an ID with bits above the layout's, and for what is no ID
     */
    public function decode(int|string $id): Decoded
    {
        $room = Core::struct('polyflake_decoded');
        $detail = Core::detail();
        $status = Library::ffi()->polyflake_layout_decode($this->pointer(), Core::bits($id), $room, $detail);
        Core::check($status, $detail);
        $decoded = $room[0];
        $fields = [];
        foreach ($this->fields as $field) {
            if ($field->isNode) {
                $fields[$field->name] = $decoded->fields[count($fields)];
            }
        }
        return new Decoded(
            id: Core::number($decoded->id),
            timestampMs: $decoded->timestamp_ms,
            time: Core::time($decoded->timestamp_ms),
            ticks: $decoded->ticks,
            node: $decoded->node,
            fields: $fields,
            sequence: $decoded->sequence,
        );
    }

    /**
     * The ID of an instant, a node and a sequence number. Nothing keeps it from repeating an ID that was issued.
     *
     * @param DateTimeInterface|int $time an instant or Unix ms; rounded down to its tick
     * @param int|array<string, int>|string|null $node as for a Snowflake; null for a layout without node fields
     * @throws Exception\TimeOutOfRangeException before the epoch or past the layout's end
     * @throws Exception\InvalidNodeException for a node outside the layout
     * @throws Exception\InvalidOptionException for a sequence outside the layout
     */
    public function compose(DateTimeInterface|int $time, int|array|string|null $node, int $sequence): int|string
    {
        [$ms] = Core::instant($time);
        $ffi = Library::ffi();
        $id = Core::room('uint64_t');
        $detail = Core::detail();
        $options = $ffi->polyflake_options_new();
        try {
            Core::check($ffi->polyflake_options_set_layout($options, $this->pointer(), $detail), $detail);
            Core::setNode($options, $node, $detail);
            Core::check($ffi->polyflake_options_compose($options, $ms, $sequence, $id, $detail), $detail);
        } finally {
            $ffi->polyflake_options_free($options);
        }
        return Core::number($id[0]);
    }

    /**
     * The lowest ID at or after an instant, for queries by time.
     *
     * @param DateTimeInterface|int $time an instant or Unix ms
     * @throws Exception\TimeOutOfRangeException before the epoch or past the layout's end
     * @throws Exception\InvalidLayoutException where a node field stands above the timestamp
     */
    public function minId(DateTimeInterface|int $time): int|string
    {
        [$ms, $nanoseconds] = Core::instant($time);
        $id = Core::room('uint64_t');
        $detail = Core::detail();
        $status = Library::ffi()->polyflake_layout_min_id($this->pointer(), $ms, $nanoseconds, $id, $detail);
        Core::check($status, $detail);
        return Core::number($id[0]);
    }

    /**
     * The highest ID at or before an instant, for queries by time.
     *
     * @param DateTimeInterface|int $time an instant or Unix ms
     * @throws Exception\TimeOutOfRangeException before the epoch or past the layout's end
     * @throws Exception\InvalidLayoutException where a node field stands above the timestamp
     */
    public function maxId(DateTimeInterface|int $time): int|string
    {
        [$ms, $nanoseconds] = Core::instant($time);
        $id = Core::room('uint64_t');
        $detail = Core::detail();
        $status = Library::ffi()->polyflake_layout_max_id($this->pointer(), $ms, $nanoseconds, $id, $detail);
        Core::check($status, $detail);
        return Core::number($id[0]);
    }

    /**
     * The instant of tick 0, in UTC.
     */
    public function epoch(): DateTimeImmutable
    {
        return Core::time($this->epochMs);
    }

    /**
     * The layout's last instant, in UTC. PHP's time reaches that of every layout.
     */
    public function endsAt(): DateTimeImmutable
    {
        return Core::time($this->endsAtMs);
    }

    public function equals(self $other): bool
    {
        return $this->text === $other->text;
    }

    public function __toString(): string
    {
        return $this->text;
    }

    /**
     * @return array{text: string}
     */
    public function __serialize(): array
    {
        return ['text' => $this->text];
    }

    /**
     * @param array{text: string} $data
     */
    public function __unserialize(array $data): void
    {
        $this->__construct($data['text']);
    }

    /**
     * The library's layout, made anew where this object is a clone.
     *
     * @internal
     */
    public function pointer(): CData
    {
        $pointer = (self::$pointers[$this] ?? null)?->pointer;
        if ($pointer === null) {
            self::$pointers[$this] = new LayoutPointer($this->text);
            $pointer = self::$pointers[$this]->pointer;
        }
        return $pointer;
    }

    private static function textOf(CData $pointer): string
    {
        $size = Library::ffi()->POLYFLAKE_LAYOUT_TEXT_SIZE;
        $text = Core::room('char', $size);
        $detail = Core::detail();
        Core::check(Library::ffi()->polyflake_layout_text($pointer, $text, $size, $detail), $detail);
        return FFI::string($text);
    }

    private function readProperties(CData $pointer): void
    {
        $room = Core::struct('polyflake_layout_info');
        $detail = Core::detail();
        Core::check(Library::ffi()->polyflake_layout_properties($pointer, $room, $detail), $detail);
        $info = $room[0];
        $this->epochMs = $info->epoch_ms;
        $this->tickMs = $info->tick_ms;
        $this->endsAtMs = $info->ends_at_ms;
        $this->idsPerTick = $info->ids_per_tick;
        $this->nodes = $info->nodes;
        $this->totalBits = $info->total_bits;
        $this->timestampBits = $info->timestamp_bits;
        $this->timestampShift = $info->timestamp_shift;
        $this->sequenceBits = $info->sequence_bits;
        $this->sequenceShift = $info->sequence_shift;
        $this->nodeBits = $info->node_bits;
        $this->fields = self::readFields($pointer, $info->field_count);
    }

    /**
     * @return list<Field>
     */
    private static function readFields(CData $pointer, int $count): array
    {
        $room = Core::struct('polyflake_field');
        $detail = Core::detail();
        $field = $room[0];
        $fields = [];
        for ($index = 0; $index < $count; $index++) {
            Core::check(Library::ffi()->polyflake_layout_field($pointer, $index, $room, $detail), $detail);
            $name = FFI::string($field->name);
            $fields[] = new Field($name, $field->bits, $field->shift, $field->mask, $field->is_node === 1);
        }
        return $fields;
    }
}
