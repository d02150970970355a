import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from os import PathLike
from typing import (
    Final,
    Literal,
    NoReturn,
    Protocol,
    SupportsIndex,
    TypeAlias,
    final,
    type_check_only,
)

if sys.version_info >= (3, 12):
    from collections.abc import Buffer
else:
    from typing_extensions import Buffer

__all__ = [
    "PRESETS",
    "Counter",
    "CounterStats",
    "Decoded",
    "DecodedAll",
    "Field",
    "Layout",
    "Lease",
    "PublicIds",
    "Sequences",
    "SequencesStats",
    "Snowflake",
    "Stats",
    "__version__",
    "format_id",
    "parse_id",
    "reset_state",
]

_Host: TypeAlias = Literal["ordinal", "ip"]
_Node: TypeAlias = SupportsIndex | Mapping[str, SupportsIndex | _Host] | _Host
_Key: TypeAlias = str | SupportsIndex
_Time: TypeAlias = datetime | SupportsIndex
_Format: TypeAlias = Literal[
    "decimal",
    "hex",
    "base32",
    "base36",
    "base58",
    "base62",
    "uuid",
    "bwmarrin-base32",
    "bwmarrin-base58",
]

# Before Python 3.12, type checkers do not know that NumPy's arrays are buffers.
@type_check_only
class _Array(Protocol):
    @property
    def __array_interface__(self) -> dict[str, object]: ...

PRESETS: Final[tuple[str, ...]]
__version__: Final[str]

def format_id(id: SupportsIndex, format: _Format | None = None) -> str:
    """Write an ID as text: ``decimal`` (the default), ``hex``, ``base32``, ``base36``, ``base58``, ``base62``,
    ``uuid``, ``bwmarrin-base32`` or ``bwmarrin-base58``.

    Texts in ``base32`` (Crockford, 13 digits), ``base62`` (11 digits) and ``uuid`` (a UUID of version 8, for columns of that
    type) sort in the order of the IDs. The last two have the alphabets of the Go package bwmarrin/snowflake.

    Raises:
        InvalidIdError: if the ID does not fit 64 bits.
        InvalidOptionError: if the format is unknown.

    >>> from polyflake import format_id
    >>> format_id(38358284406638839, "base32")
    '01226N0640J7Q'
    """

def parse_id(text: str, format: _Format | None = None) -> int:
    """Read an ID from text, as written by format_id or by other programs. The default format is ``decimal``.

    ``hex``, ``base32``, ``base36`` and ``uuid`` are read in upper and lower case.

    Raises:
        InvalidIdError: for an invalid character, a number of more than 64 bits, or a UUID that no ID is written as. The message
            names the position.
        InvalidOptionError: if the format is unknown.

    >>> from polyflake import parse_id
    >>> parse_id("01226n0640j7q", "base32")
    38358284406638839
    """

def reset_state(path: str | PathLike[str]) -> None:
    """Set the cursor of a state file back to the system clock. Use it when a wrong clock has moved the cursor far into the
    future.

    Stop the processes that use the file first: calls of any that still run raise StateFileError until they restart. The
    risk: IDs that were issued ahead of the clock are issued again when the clock gets there. A file whose cursor is not
    ahead of the clock is left unchanged.

    Raises:
        StateFileError: if the file does not exist or cannot be used.
    """

@final
class Snowflake:
    """Issues unique, time-ordered 64-bit IDs. It is an iterator, and safe to share between threads.

    Args:
        layout: the name of a preset, the text of a layout, or a Layout. Default: "twitter".
        node: an int for all node bits, or a mapping of field to int. Required, unless the layout has no node field.
            No other process may use the same node at the same time, unless they share a state file.
        max_backward_ms: how far the clock may step back while IDs are still issued. Default: 1000.
        max_ahead_ms: how far IDs may run ahead of the clock to serve a burst. Default: 0.
        max_wait_ms: the longest that next_id waits, and a batch between two of its runs. Default: a tick + 1000.
        sequence_start: "spread" (the default) or "zero": the first sequence number of a fresh tick.
        clock: "system" (the default), "steady", or a callable that returns an int of Unix ms.
        state: the path of a file through which all processes of this host share the node. It is created if it does
            not exist. A Snowflake created before a fork then also works in the child.
        lease: the address of a store that leases the node, such as "redis://host/0": redis, postgres, mysql, etcd,
            zookeeper or sqlite. No two processes have one node then. The constructor waits for a free one without the
            GIL, for at most the address's wait. node narrows the choice: some of the fields, or all. It takes neither
            state nor a callable clock.

    With a built-in clock, Snowflakes of one process share a cursor, and so never repeat each other's IDs, if they have
    the same epoch and tick, the same positions and widths of timestamp and sequence, and the same node bits. Layouts
    that split the bits differently are separate systems, and their IDs may collide. With a custom clock, each Snowflake
    has its own cursor, unless it has a state file.

    Raises:
        InvalidLayoutError: if the layout cannot work.
        UnknownLayoutError: if no preset has this name.
        InvalidNodeError: if the node is missing or does not fit the layout.
        InvalidOptionError: if another option is invalid, if max_ahead_ms or max_backward_ms differ from those of a
            shared cursor, or if that cursor uses another state file or none.
        StateFileError: if the state file cannot be used.
        LeaseUnavailableError: if no node is free or the store cannot be reached, within the address's wait.
        ClockFailedError: if the custom clock fails, which is read here only for a state file.
        ForkedError: for a node that the parent process used before a fork without a state file.

    >>> from polyflake import Snowflake
    >>> ids = Snowflake(node={"datacenter": 1, "worker": 7})
    >>> ids.next_id() < ids.next_id()
    True
    """
    def __new__(
        cls,
        *,
        layout: str | Layout | None = None,
        node: _Node | None = None,
        max_backward_ms: SupportsIndex | None = None,
        max_ahead_ms: SupportsIndex | None = None,
        max_wait_ms: SupportsIndex | None = None,
        sequence_start: Literal["zero", "spread"] | None = None,
        clock: Literal["system", "steady"] | Callable[[], int] | None = None,
        state: str | PathLike[str] | None = None,
        lease: str | None = None,
    ) -> Snowflake: ...
    def close(self) -> None:
        """Close this Snowflake: from then on, calls for an ID or for stats raise ClosedError. Other Snowflakes on the same
        node or state file are not affected. A with block closes it at the end.

        With a lease, the last Snowflake that is closed gives the node back: another process can have it at once. That
        waits for the store without the GIL, for at most 5 s.
        """
    def __enter__(self) -> Snowflake: ...
    def __exit__(self, *_exception: object) -> None: ...
    def next_id(self) -> int:
        """The next ID. If the tick's sequence is used up, wait without the GIL, for at most max_wait_ms.

        Raises:
            SequenceExhaustedError: if max_wait_ms was not enough.
            ClockMovedBackwardsError: if the clock has stepped back by more than max_backward_ms (at once), or by less
                and max_wait_ms was not enough.
            TimeOutOfRangeError: if the clock is before the epoch or past the layout's end.
            ClockFailedError: if the custom clock raised, or did not return Unix ms.
            StateFileError: if the state file was renamed, deleted or replaced, or cannot be written.
            LeaseLostError: if the lease ran out, and max_wait_ms was not enough for the store to renew it.
            ForkedError: in a child process, if there is no state file.
            ClosedError: after close.
        """
    def try_next_id(self) -> int:
        """The next ID, without waiting. Raises the same exceptions as next_id, at once."""
    def next_ids(self, n: SupportsIndex) -> list[int]:
        """A list of the next n IDs. After an exception, IDs may be lost, but are never repeated.

        Raises:
            InvalidOptionError: if n is not 1 to 16777216.
            PolyflakeError: as next_id.
        """
    def fill(self, buffer: Buffer | _Array) -> None:
        """Fill a writable, contiguous buffer of 8-byte integers with IDs: an array.array("Q"), a memoryview, a NumPy or ctypes
        array. The formats are Q and q, and L and l if they have 8 bytes; signed formats only if the layout leaves the
        top bit free. Nothing else may write to the buffer meanwhile. After an exception, IDs may be lost, but are never
        repeated.

        Raises:
            TypeError or BufferError: if it is not such a buffer.
            PolyflakeError: as next_id.
        """
    def decode(self, id: SupportsIndex) -> Decoded:
        """Decode an ID with this Snowflake's layout.

        Raises:
            InvalidIdError: if the ID has bits outside the layout.
        """
    @property
    def layout(self) -> Layout:
        """The layout of the IDs."""
    @property
    def node(self) -> int:
        """All node bits together, the highest field first. With a lease, the present node: it changes when a lease was lost."""
    @property
    def lease(self) -> Lease | None:
        """How the lease stands; None without one.

        Raises:
            ClockFailedError: if the custom clock raised, or did not return Unix ms.
            ForkedError: in a child process, if there is no state file.
        """
    @property
    def stats(self) -> Stats:
        """Counters for monitoring.

        Raises:
            ClockFailedError: if the custom clock raised, or did not return Unix ms.
            ForkedError: in a child process, if there is no state file.
            ClosedError: after close.
        """
    def __iter__(self) -> Snowflake: ...
    def __next__(self) -> int: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Counter:
    """Numbers that count up, each given once: 1, 2, 3 and so on. It is an iterator, and safe to share between threads.

    Args:
        name: what the numbers are for: 1 to 100 characters.
        store: the address of a store that hands the numbers out in segments, such as "postgres://host/shop". Or a
            list of addresses, which share the numbers out: unique, but not ordered.
        start: the first number, where the store has no such counter yet: 1 to 2**63-1. Default: 1.
        step: how many numbers a segment has, 1 to 1000000000, or "auto" (the default): what lasts ten minutes, from
            100 up to 1000000. With 1 the store is asked for each number, and numbers increase over all processes.
        max_wait_ms: the longest a call waits for the store. Default: 10000.

    No number is given twice, by whichever process, as long as the store loses no write that it acknowledged. Each number
    is greater than every number that this process got before the call began (with one store). A process that ends without
    close leaves a gap of at most the numbers that it had in hand: two segments.

    The constructor makes the counter where the store has none, and waits without the GIL until it can give a number. So
    do calls where no number is in hand. Counters of one name and store share what a process has in hand. After a fork, a
    child's fetches its own numbers.

    Raises:
        InvalidOptionError: if an option is invalid, if the stores are in another order or number than the counter began
            with, or if this process uses the counter with another start or step.
        CounterUnavailableError: if the store cannot be reached within max_wait_ms, or will not give numbers.

    >>> from polyflake import Counter
    >>> with Counter("orders", store="postgres://host/shop") as orders:  # doctest: +SKIP
    ...     orders.next_id(), orders.next_id()
    (1, 2)
    """
    def __new__(
        cls,
        name: str,
        *,
        store: str | Sequence[str],
        start: SupportsIndex | None = None,
        step: SupportsIndex | Literal["auto"] | None = None,
        max_wait_ms: SupportsIndex | None = None,
    ) -> Counter: ...
    def close(self) -> None:
        """Close this Counter: from then on, calls raise ClosedError, also those that wait. Other Counters of that name are not
        affected. A with block closes it at the end.

        The last one of a name in this process gives back what it has in hand of its last segment. That waits for the store
        without the GIL, for at most 5 s.
        """
    def __enter__(self) -> Counter: ...
    def __exit__(self, *_exception: object) -> None: ...
    def next_id(self) -> int:
        """The next number. If none is in hand, wait for the store without the GIL, for at most max_wait_ms.

        Raises:
            CounterUnavailableError: if the store gave none within max_wait_ms; at once where waiting does not help: it
                refuses, somebody removed the counter, or it has reached 2**63-1.
            ClosedError: after close.
        """
    def try_next_id(self) -> int:
        """The next number, if one is in hand: it does not wait for the store.

        Raises:
            CounterUnavailableError: if none is in hand: the store is asked for more meanwhile. Always with a step of 1,
                which keeps none in hand.
            ClosedError: after close.
        """
    def next_ids(self, n: SupportsIndex) -> list[int]:
        """A list of the next n numbers, increasing. They need not follow each other: see next_block. After an exception,
        numbers may be lost, but are never given again.

        Raises:
            InvalidOptionError: if n is not 1 to 16777216.
            PolyflakeError: as next_id.
        """
    def fill(self, buffer: Buffer | _Array) -> None:
        """Fill a writable, contiguous buffer of 8-byte integers with numbers: an array.array("Q"), a memoryview, a NumPy or
        ctypes array. The formats are Q and q, and L and l if they have 8 bytes. Nothing else may write to the buffer meanwhile.
        After an exception, numbers may be lost, but are never given again.

        Raises:
            TypeError or BufferError: if it is not such a buffer.
            PolyflakeError: as next_id.
        """
    def next_block(self, n: SupportsIndex) -> range:
        """A range of n numbers that follow each other. Where fewer are left of what is in hand, those are passed over, and
        the store is asked.

        Raises:
            InvalidOptionError: if n is not 1 to 16777216, or with several stores, whose numbers do not follow each other.
            PolyflakeError: as next_id.
        """
    async def next_id_async(self) -> int:
        """next_id, awaited in an event loop of asyncio: a call that waits for the store blocks no thread. What is in hand
        comes at once. If the task is cancelled, a number may be lost, but is never given again.

        Raises:
            PolyflakeError: as next_id.
        """
    async def next_ids_async(self, n: SupportsIndex) -> list[int]:
        """next_ids, awaited as next_id_async is.

        Raises:
            PolyflakeError: as next_ids.
        """
    async def next_block_async(self, n: SupportsIndex) -> range:
        """next_block, awaited as next_id_async is.

        Raises:
            PolyflakeError: as next_block.
        """
    def peek(self) -> int:
        """The highest number that the store has handed out, in segments, to any process; 0 before the first. Asks the store.

        Raises:
            CounterUnavailableError: if the store cannot be reached within max_wait_ms, or has no such counter.
            ClosedError: after close.
        """
    def raise_to(self, number: SupportsIndex) -> None:
        """Move the counter above `number`: the store gives no segment below it any more, and this process gives up what it has
        in hand; other processes use up theirs. It changes nothing where the counter is further already. Asks the store.

        Raises:
            InvalidOptionError: if number is not 1 to 2**63-1.
            PolyflakeError: as peek.
        """
    def remove(self) -> bool:
        """Delete the counter from the store. The next open begins at its start again, and numbers repeat. This
        process's Counters of that name give none from then on. Returns whether there was one.

        Raises:
            PolyflakeError: as peek, also in a table of others.
        """
    @property
    def name(self) -> str:
        """Its name."""
    @property
    def stats(self) -> CounterStats:
        """Counters for monitoring.

        Raises:
            ClosedError: after close.
        """
    def __iter__(self) -> Counter: ...
    def __next__(self) -> int: ...
    def __reduce__(self) -> NoReturn: ...

@final
class CounterStats:
    """Counters for monitoring, of all of this process's Counters of one name and store, since the first was made."""
    @property
    def in_hand(self) -> int:
        """How many numbers are in hand."""
    @property
    def step(self) -> int:
        """How many numbers the next segment has."""
    @property
    def segments(self) -> int:
        """How often the store gave numbers."""
    @property
    def skipped(self) -> int:
        """How many numbers were passed over, so that a block is one run and numbers go on increasing."""
    @property
    def waits(self) -> int:
        """How often a call found no number in hand, and waited or failed."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Sequences:
    """A count for each of many keys: 1, 2, 3 and so on for "alice", and for "bob" the same. For the messages of an inbox, or
    the versions of a document. It is safe to share between threads.

    Args:
        name: what the keys are: 1 to 100 characters.
        store: the address of a store, such as "postgres://host/chat?label=10.0.0.7:8080". Others are told the label
            while this process gives the numbers.
        sections: how many bounds the store has, 1 to 16384. Each is shared by the keys of a section, and it cannot
            be changed later. Default: 1024.
        step: by how many numbers a bound is moved ahead: 1 to 1000000000. Default: 10000.
        max_keys: how many keys stay in memory, of at most 40 bytes each: 1 to 1000000000. Default: 1000000.
        max_wait_ms: the longest a call waits for the store: 0 to 4294967295. Default: 10000.

    A key is a str, or an int from -2**63 to 2**64-1: 5 and "5" are two keys. Its numbers increase, and none is given twice,
    by whichever process, as long as the store loses no write that it acknowledged. Numbers are skipped: by a key that left
    memory and came back, by a new key where others left, and by all keys of a section, at most two steps, when a process
    ended without close.

    One process at a time gives numbers, by a lease. The constructor waits for that without the GIL, for at most the `wait`
    of the address. Sequences of one name and store are one in a process. A child of a fork has none.

    Raises:
        InvalidOptionError: if an option is invalid, if the sequences began with another number of sections, or if this
            process uses them with other options.
        LeaseUnavailableError: if another process has the lease: the message names its label between backquotes. Or if the
            store cannot be reached.

    >>> from polyflake import Sequences
    >>> with Sequences("inbox", store="postgres://host/chat") as inbox:  # doctest: +SKIP
    ...     inbox.next_id("alice"), inbox.next_id("bob"), inbox.next_id("alice")
    (1, 1, 2)
    """
    def __new__(
        cls,
        name: str,
        *,
        store: str,
        sections: SupportsIndex | None = None,
        step: SupportsIndex | None = None,
        max_keys: SupportsIndex | None = None,
        max_wait_ms: SupportsIndex | None = None,
    ) -> Sequences: ...
    def close(self) -> None:
        """Close these Sequences: from then on, calls raise ClosedError, also those that wait. Other Sequences of that name are
        not affected. A with block closes it at the end.

        The last one of a name in this process writes to the store how far its keys counted, and gives the lease back. That
        waits for the store without the GIL, but at most 10 s.
        """
    def __enter__(self) -> Sequences: ...
    def __exit__(self, *_exception: object) -> None: ...
    def next_id(self, key: _Key) -> int:
        """The key's next number. If its section has come to its bound, or the lease was not renewed in time, wait for the
        store without the GIL, for at most max_wait_ms.

        Raises:
            LeaseUnavailableError: if another process gives the numbers by now: the message names it.
            LeaseLostError: if the lease could not be renewed, and does not come back within max_wait_ms.
            CounterUnavailableError: if the store does not move the section's bound within max_wait_ms; at once where
                waiting does not help: it refuses, has lost writes, or the section has reached 2**63-1.
            InvalidOptionError: if the key is an int that 64 bits do not hold.
            ClosedError: after close.
            ForkedError: in a child of the process that opened it.
        """
    def try_next_id(self, key: _Key) -> int:
        """The key's next number, if the store need not be waited for. It is asked meanwhile.

        Raises:
            PolyflakeError: as next_id, at once.
        """
    def next_ids(self, keys: Iterable[_Key]) -> list[int]:
        """A list of a number for each of the keys, in their order; a key that is there twice has two. The keys are any
        iterable but a str or bytes. After an exception, numbers may be lost, but are never given again.

        Raises:
            PolyflakeError: as next_id.
        """
    async def next_id_async(self, key: _Key) -> int:
        """next_id, awaited in an event loop of asyncio: a call that waits for the store blocks no thread. What is in hand
        comes at once. If the task is cancelled, a number may be lost, but is never given again.

        Raises:
            PolyflakeError: as next_id.
        """
    async def next_ids_async(self, keys: Iterable[_Key]) -> list[int]:
        """next_ids, awaited as next_id_async is.

        Raises:
            PolyflakeError: as next_ids.
        """
    @property
    def name(self) -> str:
        """Its name."""
    @property
    def stats(self) -> SequencesStats:
        """Counters for monitoring.

        Raises:
            ClosedError: after close.
            ForkedError: in a child of the process that opened it.
        """
    def __reduce__(self) -> NoReturn: ...

@final
class SequencesStats:
    """Counters for monitoring, of all of this process's Sequences of one name and store, since the first was opened."""
    @property
    def keys(self) -> int:
        """How many keys are in memory."""
    @property
    def evicted(self) -> int:
        """How many keys left memory, for others to have room."""
    @property
    def moves(self) -> int:
        """How often bounds were moved in the store."""
    @property
    def waits(self) -> int:
        """How often a call waited or gave up."""
    @property
    def time_left_ms(self) -> int:
        """For how long it may give numbers if the lease is not renewed, in ms; 0 where another process has it."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Layout:
    """What the bits of an ID mean: the fields from the highest bit down, the epoch, and the tick.

    ``Layout("twitter")`` is a preset; see PRESETS.
    ``Layout("timestamp:41|worker:10|sequence:12@1288834974657/1ms")`` is a layout from its text, with the epoch in
    Unix ms and the tick as Nms or Ns.
    ``Layout(fields={"timestamp": 41, "worker": 10, "sequence": 12}, epoch_ms=1288834974657)`` is the same from its
    parts, the highest field first; tick_ms is 1 by default.
    ``str(layout)`` returns the text.

    Raises:
        InvalidLayoutError: if the layout cannot work.
        UnknownLayoutError: if no preset has this name.

    >>> from polyflake import Layout
    >>> Layout("discord").decode(175928847299117063).fields["worker"]
    1
    """
    def __new__(
        cls,
        text: str | Layout | None = None,
        /,
        *,
        fields: Mapping[str, SupportsIndex] | Iterable[tuple[str, SupportsIndex]] | None = None,
        epoch_ms: SupportsIndex | None = None,
        tick_ms: SupportsIndex | None = None,
    ) -> Layout: ...
    def decode(self, id: SupportsIndex) -> Decoded:
        """Decode an ID.

        Raises:
            InvalidIdError: if the ID has bits outside the layout.
        """
    def decode_all(self, buffer: Buffer | _Array) -> DecodedAll:
        """Decode all IDs of a contiguous buffer of 8-byte integers: an array.array("Q"), a memoryview or a NumPy array. The
        formats are Q and q, and L and l if they have 8 bytes. It may be read-only.

        The IDs are copied, so the buffer may change afterwards. Nothing else may write to it during the call.

        Raises:
            TypeError or BufferError: if it is not such a buffer.
            InvalidIdError: if an ID is negative or has bits outside the layout. The message names the first.
        """
    def compose(self, time: _Time, node: _Node | None, sequence: SupportsIndex) -> int:
        """Build an ID from a time, a node and a sequence number.

        Args:
            time: a datetime with a time zone, or an int of Unix ms; rounded down to its tick.
            node: an int, a mapping of field to int, or None if the layout has no node field.

        Nothing prevents it from repeating an ID that was issued.

        Raises:
            TimeOutOfRangeError: if the time is before the epoch or past the layout's end.
            InvalidNodeError: if the node does not fit the layout.
            InvalidOptionError: if the sequence number does not fit the layout, or the time has no time zone.
        """
    def min_id(self, time: _Time) -> int:
        """The lowest ID at or after a time: a datetime with a time zone, or an int of Unix ms.

        Raises:
            TimeOutOfRangeError: if the layout has no ID for this time.
            InvalidLayoutError: if a node field is above the timestamp.
            InvalidOptionError: if the time has no time zone.
        """
    def max_id(self, time: _Time) -> int:
        """The highest ID at or before a time: a datetime with a time zone, or an int of Unix ms.

        Raises:
            TimeOutOfRangeError: if the layout has no ID for this time.
            InvalidLayoutError: if a node field is above the timestamp.
            InvalidOptionError: if the time has no time zone.
        """
    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, the highest first."""
    @property
    def epoch_ms(self) -> int:
        """The start of tick 0, in Unix ms."""
    @property
    def epoch(self) -> datetime | None:
        """The start of tick 0, in UTC; None past the year 9999."""
    @property
    def tick_ms(self) -> int:
        """The length of a tick, in ms."""
    @property
    def ends_at_ms(self) -> int:
        """The layout's last instant, in Unix ms."""
    @property
    def ends_at(self) -> datetime | None:
        """The layout's last instant, in UTC; None past the year 9999."""
    @property
    def ids_per_tick(self) -> int:
        """How many IDs one node can issue in a tick."""
    @property
    def nodes(self) -> int:
        """How many nodes the layout can tell apart."""
    @property
    def total_bits(self) -> int:
        """The width of all fields together, in bits."""
    @property
    def timestamp_bits(self) -> int:
        """The width of the timestamp, in bits."""
    @property
    def timestamp_shift(self) -> int:
        """The number of bits below the timestamp."""
    @property
    def sequence_bits(self) -> int:
        """The width of the sequence, in bits."""
    @property
    def sequence_shift(self) -> int:
        """The number of bits below the sequence."""
    @property
    def node_bits(self) -> int:
        """The width of all node fields together, in bits."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Layout], tuple[str]]: ...

@final
class Field:
    """A field of a layout."""
    @property
    def name(self) -> str:
        """``timestamp``, ``sequence``, or the name of a node field."""
    @property
    def bits(self) -> int:
        """The width of the field, in bits."""
    @property
    def shift(self) -> int:
        """The number of bits below the field."""
    @property
    def mask(self) -> int:
        """A mask of the field's bits within an ID."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Decoded:
    """The parts of an ID."""
    @property
    def id(self) -> int:
        """The ID."""
    @property
    def layout(self) -> Layout:
        """The layout that the ID was decoded with."""
    @property
    def timestamp_ms(self) -> int:
        """The start of the ID's tick, in Unix ms."""
    @property
    def time(self) -> datetime | None:
        """The start of the ID's tick, in UTC; None past the year 9999."""
    @property
    def ticks(self) -> int:
        """The number of ticks since the epoch."""
    @property
    def node(self) -> int:
        """All node bits together, the highest field first."""
    @property
    def fields(self) -> dict[str, int]:
        """The values of the node fields by name, the highest first."""
    @property
    def sequence(self) -> int:
        """The sequence number within the tick."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Callable[[SupportsIndex], Decoded], tuple[int]]: ...

@final
class DecodedAll:
    """The parts of many IDs, each part a column: a read-only memoryview with one value for each ID, in their order. It is
    made when it is first read.

    ``numpy.asarray(column)`` takes it without copying. ``ids`` is of format Q (uint64) and all others are of format q
    (int64), so ``numpy.asarray(decoded.timestamps_ms).view("datetime64[ms]")`` are the times.
    """
    @property
    def ids(self) -> memoryview:
        """The IDs."""
    @property
    def layout(self) -> Layout:
        """The layout that the IDs were decoded with."""
    @property
    def timestamps_ms(self) -> memoryview:
        """The start of each ID's tick, in Unix ms."""
    @property
    def ticks(self) -> memoryview:
        """The number of ticks since the epoch."""
    @property
    def nodes(self) -> memoryview:
        """All node bits together, the highest field first."""
    @property
    def fields(self) -> dict[str, memoryview]:
        """The columns of the node fields by name, the highest first."""
    @property
    def sequences(self) -> memoryview:
        """The sequence number within each tick."""
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Callable[[Buffer], DecodedAll], tuple[array[int]]]: ...

@final
class PublicIds:
    """Turns IDs into short texts for the outside, such as ``order_15ShV20Bxc6UJvKSQbDvo0J``, and back. A text hides when and
    where an ID was made, and needs no table.

    Args:
        keys: keys as texts, ``pfk_`` and 23 base62 digits: an iterable of them, or one str, in which white space or commas
            separate them. The first encodes, so a set is refused; each decodes. `generate_key` and ``polyflake public
            key`` make keys.
        prefix: what texts begin with: words of a-z and 0-9 joined by ``_``, at most 24 characters, or "".

    It takes a few KiB; threads may share it. Its repr does not show keys, and dropping it wipes them from its memory. Python
    keeps the texts that you gave.

    Raises:
        InvalidOptionError: if a key or the prefix is invalid, if two keys have the same number or the same bytes, or if there
            is no key, or more than 16. The message shows nothing of a key.

    >>> from polyflake import PublicIds
    >>> orders = PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "order")
    >>> orders.encode(1541815603606036480)
    'order_15ShV20Bxc6UJvKSQbDvo0J'
    >>> orders.decode("order_15ShV20Bxc6UJvKSQbDvo0J")
    1541815603606036480
    """
    def __new__(cls, keys: str | Iterable[str], prefix: str) -> PublicIds: ...
    def encode(self, id: SupportsIndex) -> str:
        """The text of an ID.

        Raises:
            InvalidIdError: if the ID does not fit 64 bits.
        """
    def encode_all(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """The texts of an iterable of IDs, such as those of a page of rows.

        Raises:
            InvalidIdError: if an ID does not fit 64 bits.
        """
    def decode(self, text: str) -> int:
        """The ID of a text.

        A text that was not encoded with this prefix and one of these keys decodes with a chance of 1 in 2**64.

        Raises:
            InvalidIdError: for any other text, with the reason.
        """
    def decode_all(self, texts: Iterable[str]) -> list[int]:
        """The IDs of an iterable of texts.

        Raises:
            InvalidIdError: if one of them is not the text of an ID, with the reason.
        """
    @staticmethod
    def generate_key(number: SupportsIndex | None = None) -> str:
        """Make a key of random bytes from the operating system. Keep it where you keep secrets.

        Args:
            number: which key it is, from 0 to 61. Texts name their key by it, so give each key another.

        Raises:
            InvalidOptionError: if the number is not one of these.
        """
    @property
    def prefix(self) -> str:
        """What texts begin with."""
    @property
    def key_numbers(self) -> tuple[int, ...]:
        """The numbers of the keys. The first encodes."""
    def __copy__(self) -> PublicIds: ...
    def __deepcopy__(self, memo: object, /) -> PublicIds: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Stats:
    """Counters for monitoring, since the cursor was created. Counted only on slow paths."""
    @property
    def waits(self) -> int:
        """How often a call found no free slot, and waited or failed."""
    @property
    def rollbacks(self) -> int:
        """How often the clock was seen to step back, tolerated or not."""
    @property
    def lead_ms(self) -> int:
        """How many ms the last tick taken is ahead of the clock; 0 if it is not."""
    @property
    def last_issued_ms(self) -> int | None:
        """The start of the last ID's tick, in Unix ms; None before the first ID."""
    @property
    def lease_losses(self) -> int:
        """How often the lease was lost: it ran out, or another process had its node."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Lease:
    """How a Snowflake's lease stands: see Snowflake.lease."""
    @property
    def node(self) -> int:
        """The node that it has, or had last."""
    @property
    def bound_ms(self) -> int:
        """Up to when it may issue without hearing from the store, in Unix ms; 0 if it has no node now."""
    @property
    def left_ms(self) -> int:
        """How many ms that is from now."""
    @property
    def store(self) -> str:
        """The store's address, without secrets."""
    @property
    def state(self) -> Literal["held", "unreachable", "lost", "closed"]:
        """One of "held"; "unreachable": the store did not answer when it was last asked, and issuing goes on up to the bound;
        "lost": it ran out, and nothing is issued until the store has renewed it or has given another node; or "closed".
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
