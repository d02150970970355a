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
 * The meaning of an ID's bits. A Layout is an immutable value, which can be compared (== or equals()), cloned and
 * serialized.
 *
 *     $layout = new Layout('discord');
 *     $layout->decode(175928847299117063)->fields['worker']; // 1
 *     $from = $layout->minId(new DateTimeImmutable('2016-04-30')); // WHERE id >= $from: all IDs since then
 *
 * IDs are ints. Those with the top bit set, which only 64-bit layouts have, are decimal strings.
 */
final class Layout implements Stringable
{
    /** The layout as text, which the constructor reads back. */
    public readonly string $text;
    /** The start of tick 0, in Unix ms. */
    public readonly int $epochMs;
    /** The length of a tick, in ms. */
    public readonly int $tickMs;
    /** The layout's last instant, in Unix ms. */
    public readonly int $endsAtMs;
    /** How many IDs one node can issue in a tick. */
    public readonly int $idsPerTick;
    /** How many different nodes the layout allows. */
    public readonly int $nodes;
    /** The width of all fields together, in bits. */
    public readonly int $totalBits;
    /** The width of the timestamp, in bits. */
    public readonly int $timestampBits;
    /** The number of bits below the timestamp. */
    public readonly int $timestampShift;
    /** The width of the sequence, in bits. */
    public readonly int $sequenceBits;
    /** The number of bits below the sequence. */
    public readonly int $sequenceShift;
    /** The width of all node fields together, in bits. */
    public readonly int $nodeBits;
    /**
     * All fields, highest first.
     *
     * @var list<Field>
     */
    public readonly array $fields;

    /** The highest tick number that the timestamp can hold. */
    private readonly int $ticksMask;
    /** @var array<string, array{int, int, int}> the width, the shift and the highest value of each node field */
    private readonly array $nodeFields;

    /**
     * The library's layouts. They are not properties, so that == compares only values.
     *
     * @var ?WeakMap<self, LayoutPointer>
     */
    private static ?WeakMap $pointers = null;

    /**
     * Parses a layout.
     *
     * @param string $layout the name of a preset (see presets()), or a string such as
     *     "timestamp:41|worker:10|sequence:12@1288834974657/1ms": fields from the highest bit down, the epoch in Unix
     *     ms, the tick as Nms or Ns
     * @throws Exception\InvalidLayoutException if the layout is invalid
     * @throws Exception\UnknownLayoutException if no preset has this name
     * @throws LibraryException if libpolyflake cannot be used
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
     * Returns the layout of a Snowflake.
     *
     * @internal
     */
    public static function fromPointer(CData $pointer): self
    {
        return new self(self::textOf($pointer));
    }

    /**
     * Returns the names of all presets.
     *
     * @return list<string>
     * @throws LibraryException if libpolyflake cannot be used
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
     * Decodes an ID.
     *
     * @param int|string $id an int or a decimal string
     * @throws Exception\InvalidIdException if the ID has bits outside the layout, or is not an ID
     */
    public function decode(int|string $id): Decoded
    {
        // The library parses every string except those that PHP would write for an int.
        $bits = is_int($id) || (string) (int) $id === $id ? (int) $id : -1;
        if ($bits < 0 || $bits >> $this->totalBits !== 0) {
            $bits = $this->checked($id);
        }
        $node = 0;
        $fields = [];
        foreach ($this->nodeFields as $name => [$width, $shift, $mask]) {
            $fields[$name] = $value = $bits >> $shift & $mask;
            $node = $node << $width | $value;
        }
        $ticks = $bits >> $this->timestampShift & $this->ticksMask;
        $timestampMs = $this->epochMs + $ticks * $this->tickMs;
        return new Decoded(
            id: Core::number($bits),
            timestampMs: $timestampMs,
            time: Core::time($timestampMs),
            ticks: $ticks,
            node: $node,
            fields: $fields,
            sequence: $bits >> $this->sequenceShift & $this->idsPerTick - 1,
        );
    }

    /**
     * Builds an ID from a time, a node and a sequence number. Nothing prevents it from repeating an ID that was already
     * issued.
     *
     * @param DateTimeInterface|int $time a time or Unix ms; rounded down to its tick
     * @param int|array<string, int|string>|string|bool|null $node as for a Snowflake; null for a layout without node
     *     fields
     * @throws Exception\TimeOutOfRangeException if the time is before the epoch or past the layout's end
     * @throws Exception\InvalidNodeException if the node does not fit the layout
     * @throws Exception\InvalidOptionException if the sequence number does not fit the layout
     */
    public function compose(DateTimeInterface|int $time, int|array|string|bool|null $node, int $sequence): int|string
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
     * Returns the lowest ID at or after a time, for queries by time.
     *
     * @param DateTimeInterface|int $time a time or Unix ms
     * @throws Exception\TimeOutOfRangeException if the layout has no ID for this time
     * @throws Exception\InvalidLayoutException if a node field is above the timestamp
     */
    public function minId(DateTimeInterface|int $time): int|string
    {
        return $this->bound('polyflake_layout_min_id', $time);
    }

    /**
     * Returns the highest ID at or before a time, for queries by time.
     *
     * @param DateTimeInterface|int $time a time or Unix ms
     * @throws Exception\TimeOutOfRangeException if the layout has no ID for this time
     * @throws Exception\InvalidLayoutException if a node field is above the timestamp
     */
    public function maxId(DateTimeInterface|int $time): int|string
    {
        return $this->bound('polyflake_layout_max_id', $time);
    }

    /**
     * Returns the start of tick 0, in UTC.
     */
    public function epoch(): DateTimeImmutable
    {
        return Core::time($this->epochMs);
    }

    /**
     * Returns the layout's last instant, in UTC.
     */
    public function endsAt(): DateTimeImmutable
    {
        return Core::time($this->endsAtMs);
    }

    /**
     * Returns true if both have the same fields, epoch and tick, even if one is a preset and the other is written out.
     */
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
     * Returns the library's layout, which is recreated if this object is a clone.
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

    private function bound(string $function, DateTimeInterface|int $time): int|string
    {
        [$ms, $nanoseconds] = Core::instant($time);
        $id = Core::room('uint64_t');
        $detail = Core::detail();
        Core::check(Library::ffi()->$function($this->pointer(), $ms, $nanoseconds, $id, $detail), $detail);
        return Core::number($id[0]);
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
        $this->ticksMask = PHP_INT_MAX >> 63 - $this->timestampBits;
        $nodeFields = [];
        foreach ($this->fields as $field) {
            if ($field->isNode) {
                $nodeFields[$field->name] = [$field->bits, $field->shift, (1 << $field->bits) - 1];
            }
        }
        $this->nodeFields = $nodeFields;
    }

    /**
     * Returns the bits of an ID as the library reads them. If it is not an ID of this layout, throws an exception that
     * says why.
     */
    private function checked(int|string $id): int
    {
        $bits = Core::bits($id);
        $detail = Core::detail();
        $decoded = Core::struct('polyflake_decoded');
        Core::check(Library::ffi()->polyflake_layout_decode($this->pointer(), $bits, $decoded, $detail), $detail);
        return $bits;
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
