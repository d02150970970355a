import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from os import PathLike
from types import ModuleType
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

# Before Python 3.12, type checkers do not know that NumPy arrays are buffers.
@type_check_only
class _Array(Protocol):
    @property
    def __array_interface__(self) -> dict[str, object]: ...

PRESETS: Final[tuple[str, ...]]
__version__: Final[str]

def _load(name: str) -> ModuleType:
    """Import a module on first use."""

def format_id(id: SupportsIndex, format: _Format | None = None) -> str:
    """Write an ID as text: ``decimal`` (the default), ``hex``, ``base32``, ``base36``, ``base58``, ``base62``,
    ``uuid``, ``bwmarrin-base32`` or ``bwmarrin-base58``.

    Strings in ``base32`` (Crockford, 13 digits), ``base62`` (11 digits) and ``uuid`` (a version 8 UUID, for columns of
    that type) sort in the order of the IDs. The last two formats use the alphabets of the Go package
    bwmarrin/snowflake.

    Raises:
        InvalidIdError: if the ID does not fit in 64 bits.
        InvalidOptionError: if the format is unknown.

    >>> from polyflake import format_id
    >>> format_id(38358284406638839, "base32")
    '01226N0640J7Q'
    """

def parse_id(text: str, format: _Format | None = None) -> int:
    """Parse an ID from text written by format_id or another program. The default format is ``decimal``.

    ``hex``, ``base32``, ``base36`` and ``uuid`` may be in upper or lower case.

    Raises:
        InvalidIdError: if the text contains an invalid character, exceeds 64 bits, or is a UUID that does not represent
            an ID. The message gives the position.
        InvalidOptionError: if the format is unknown.

    >>> from polyflake import parse_id
    >>> parse_id("01226n0640j7q", "base32")
    38358284406638839
    """

def reset_state(path: str | PathLike[str]) -> None:
    """Set a state file's cursor back to the system clock. Use this after a wrong clock has moved the cursor far into the
    future.

    Stop the processes that use the file first. In any process that is still running, calls raise StateFileError until
    the process restarts. IDs that were issued ahead of the clock are issued again once the clock reaches their time.
    If the cursor is not ahead of the clock, the file is left unchanged.

    Raises:
        StateFileError: if the file does not exist or cannot be used.
    """

@final
class Snowflake:
    """Issues unique, time-ordered 64-bit IDs. A Snowflake is an iterator, and is safe to share between threads.

    Args:
        layout: a preset's name, a layout string, or a Layout. Default: "twitter".
        node: an int for all node bits, or a mapping of field names to ints. Required, unless the layout has no node
            field or the node is leased. No other process may use the same node at the same time, unless they share a
            state file.
        max_backward_ms: how far the clock may step back before IDs stop being issued. Default: 1000.
        max_ahead_ms: how far IDs may run ahead of the clock to serve a burst. Default: 0.
        max_wait_ms: the maximum time that next_id waits. A batch may wait that long each time it stalls. Default: a
            tick plus 1000 ms.
        sequence_start: the first sequence number of a new tick: "spread" (the default) or "zero".
        clock: "system" (the default), "steady", or a callable that returns Unix ms as an int.
        state: the path of a file through which all processes on this host share the node. The file is created if it
            does not exist. A Snowflake created before a fork then also works in the child.
        lease: the address of a store that leases the node, such as "redis://host/0": redis, postgres, mysql, etcd,
            zookeeper or sqlite. No two processes then have the same node at the same time. The constructor waits for a
            free node, without the GIL, for at most the ``wait`` set in the address. If node sets only some of the
            fields, they narrow the choice; if it is complete, that exact node is leased. A lease cannot be combined
            with state or a callable clock.

    With a built-in clock, the Snowflakes in a process share a cursor, and so never repeat each other's IDs, if they
    have the same epoch and tick, the same timestamp and sequence positions and widths, and the same node bits. Layouts
    that split the bits differently are separate systems, and their IDs may collide. With a custom clock, each Snowflake
    has its own cursor, unless it has a state file.

    Raises:
        InvalidLayoutError: if the layout is invalid.
        UnknownLayoutError: if no preset has this name.
        InvalidNodeError: if the node is missing or does not fit the layout.
        InvalidOptionError: if another option is invalid, if max_ahead_ms or max_backward_ms differs from that of the
            shared cursor, or if the shared cursor uses a different state file or none.
        StateFileError: if the state file cannot be used.
        LeaseUnavailableError: if no node becomes free, or the store cannot be reached, within the ``wait`` set in the
            address.
        ClockFailedError: if the custom clock fails. The constructor reads it only if a state file is used.
        ForkedError: if the parent process used this node before a fork, without a state file.

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
        """Close this Snowflake. From then on, requests for IDs or stats raise ClosedError. Other Snowflakes on the same
        node or state file are not affected. A with block closes its Snowflake on exit.

        Closing the last Snowflake that uses a lease gives the node back, so that another process can lease it at once.
        This waits for the store, without the GIL, for at most 5 s.
        """
    def __enter__(self) -> Snowflake: ...
    def __exit__(self, *_exception: object) -> None: ...
    def next_id(self) -> int:
        """Return the next ID. If the tick's sequence is used up, wait without the GIL, for at most max_wait_ms.

        Raises:
            SequenceExhaustedError: if no ID became available within max_wait_ms.
            ClockMovedBackwardsError: at once if the clock stepped back by more than max_backward_ms, or after the wait
                if a smaller step back left no ID available within max_wait_ms.
            TimeOutOfRangeError: if the clock is before the epoch or past the layout's end.
            ClockFailedError: if the custom clock raised an exception, or did not return Unix ms.
            StateFileError: if the state file was renamed, deleted or replaced, or cannot be written.
            LeaseLostError: if the lease expired, and the store did not renew it within max_wait_ms.
            ForkedError: in a child process, if there is no state file.
            ClosedError: after close.
        """
    def try_next_id(self) -> int:
        """Return the next ID without waiting. Raises the same exceptions as next_id, but at once."""
    def next_ids(self, n: SupportsIndex) -> list[int]:
        """Return a list of the next n IDs. If the call raises an exception, IDs may be lost, but are never repeated.

        Raises:
            InvalidOptionError: if n is not between 1 and 16777216.
            PolyflakeError: for the same reasons as next_id.
        """
    def fill(self, buffer: Buffer | _Array) -> None:
        """Fill a writable, contiguous buffer of 8-byte integers with IDs, such as an array.array("Q"), a memoryview, or a
        NumPy or ctypes array. The formats are Q and q, and L and l if they have 8 bytes; signed formats are accepted
        only if the layout leaves the top bit free. Nothing else may write to the buffer during the call. If the call
        raises an exception, IDs may be lost, but are never repeated.

        Raises:
            TypeError or BufferError: if the buffer is not of this kind.
            PolyflakeError: for the same reasons as next_id.
        """
    def decode(self, id: SupportsIndex) -> Decoded:
        """Decode an ID with this Snowflake's layout.

        Raises:
            InvalidIdError: if the ID has bits set outside the layout.
        """
    @property
    def layout(self) -> Layout:
        """The layout of the IDs."""
    @property
    def node(self) -> int:
        """All node bits as one number, highest field first. With a lease, this is the current node, which may change after
        the lease is lost.
        """
    @property
    def lease(self) -> Lease | None:
        """A snapshot of the lease, or None if there is no lease.

        Raises:
            ClockFailedError: if the custom clock raised an exception, or did not return Unix ms.
            ForkedError: in a child process, if there is no state file.
        """
    @property
    def stats(self) -> Stats:
        """Counters for monitoring.

        Raises:
            ClockFailedError: if the custom clock raised an exception, or did not return Unix ms.
            ForkedError: in a child process, if there is no state file.
            ClosedError: after close.
        """
    def __iter__(self) -> Snowflake: ...
    def __next__(self) -> int: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Counter:
    """Issues numbers that count up, each only once: 1, 2, 3 and so on. A Counter is an iterator, and is safe to share
    between threads.

    Args:
        name: a name for the counter, 1 to 100 characters.
        store: the address of a store that hands out the numbers in segments, such as "postgres://host/shop", or a list
            of addresses. Several stores divide the numbers among themselves, and the numbers are then unique but not
            ordered.
        start: the first number, if the store does not have the counter yet: 1 to 2**63-1. Default: 1.
        step: the size of a segment: 1 to 1000000000 numbers, or "auto" (the default), which requests enough to last ten
            minutes, from 100 to 1000000. With 1, each number is requested from the store, and numbers increase across
            all processes.
        max_wait_ms: the maximum time that a call waits for the store. Default: 10000.

    No number is issued twice, by any process, as long as the store does not lose writes that it has acknowledged. With
    one store, each number is greater than every number this process received before the call began. If a process exits
    without calling close, the numbers it had fetched but not returned are skipped: at most two segments, plus the
    numbers taken by calls in progress.

    The constructor creates the counter if the store does not have it, and waits, without the GIL, until it can issue a
    number. Calls wait in the same way if no number is in hand. Within a process, Counters with the same name and store
    share the numbers in hand. After a fork, the child's Counters fetch their own numbers.

    Raises:
        InvalidOptionError: if an option is invalid, if the stores differ in order or number from those the counter
            started with, or if this process already uses the counter with a different start or step.
        CounterUnavailableError: if the store cannot be reached within max_wait_ms, or if the store refuses to hand out
            numbers.

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
        """Close this Counter. From then on, calls raise ClosedError, including calls that are already waiting. Other
        Counters with that name are not affected. A with block closes its Counter on exit.

        Closing the last Counter with a name in this process gives back the numbers in hand that belong to the last
        segment. This waits for the store, without the GIL, for at most 5 s.
        """
    def __enter__(self) -> Counter: ...
    def __exit__(self, *_exception: object) -> None: ...
    def next_id(self) -> int:
        """Return the next number. If no number is in hand, wait for the store without the GIL, for at most max_wait_ms.

        Raises:
            CounterUnavailableError: if the store did not hand out a number within max_wait_ms, or at once if waiting
                would not help: the store refuses, the counter was removed, or it has reached 2**63-1.
            ClosedError: after close.
        """
    def try_next_id(self) -> int:
        """Return the next number if one is in hand, without waiting for the store.

        Raises:
            CounterUnavailableError: if no number is in hand. More are then requested from the store in the background.
                With a step of 1, this is always raised, because no number is ever in hand.
            ClosedError: after close.
        """
    def next_ids(self, n: SupportsIndex) -> list[int]:
        """Return a list of the next n numbers, in increasing order. They are not necessarily consecutive: see next_block.
        If the call raises an exception, numbers may be lost, but are never issued again.

        Raises:
            InvalidOptionError: if n is not 1 to 16777216.
            PolyflakeError: for the same reasons as next_id.
        """
    def fill(self, buffer: Buffer | _Array) -> None:
        """Fill a writable, contiguous buffer of 8-byte integers with numbers, such as an array.array("Q"), a memoryview,
        or a NumPy or ctypes array. The formats are Q and q, and L and l if they have 8 bytes. Nothing else may write to
        the buffer during the call. If the call raises an exception, numbers may be lost, but are never issued again.

        Raises:
            TypeError or BufferError: if the buffer is not of this kind.
            PolyflakeError: for the same reasons as next_id.
        """
    def next_block(self, n: SupportsIndex) -> range:
        """Return a range of n consecutive numbers. If fewer than n are left in hand, skip them and ask the store for
        more.

        Raises:
            InvalidOptionError: if n is not between 1 and 16777216, or if there are several stores, whose numbers are
                not consecutive.
            PolyflakeError: for the same reasons as next_id.
        """
    async def next_id_async(self) -> int:
        """Like next_id, but for an asyncio event loop: waiting for the store does not block a thread. A number in hand is
        returned at once. If the task is cancelled, a number may be lost, but is never issued again.

        Raises:
            PolyflakeError: for the same reasons as next_id.
        """
    async def next_ids_async(self, n: SupportsIndex) -> list[int]:
        """Like next_ids, but for an asyncio event loop: see next_id_async.

        Raises:
            PolyflakeError: for the same reasons as next_ids.
        """
    async def next_block_async(self, n: SupportsIndex) -> range:
        """Like next_block, but for an asyncio event loop: see next_id_async.

        Raises:
            PolyflakeError: for the same reasons as next_block.
        """
    def peek(self) -> int:
        """Return the highest number in the segments that the store has handed out, to any process, or 0 before the first.
        This queries the store.

        Raises:
            CounterUnavailableError: if the store cannot be reached within max_wait_ms, or has no such counter.
            ClosedError: after close.
        """
    def raise_to(self, number: SupportsIndex) -> None:
        """Move the counter above `number`, so that the store hands out only higher segments. This process gives up its
        numbers in hand; other processes first use up theirs. If the counter is already higher, nothing changes. This
        queries the store.

        Raises:
            InvalidOptionError: if number is not between 1 and 2**63-1.
            PolyflakeError: for the same reasons as peek.
        """
    def remove(self) -> bool:
        """Delete the counter from the store, and return whether it existed. From then on, this process's Counters with
        that name issue no more numbers. The next time the counter is opened, it begins at its start again, and numbers
        repeat.

        Raises:
            PolyflakeError: for the same reasons as peek, and always for a table that belongs to another system.
        """
    @property
    def name(self) -> str:
        """The counter's name."""
    @property
    def stats(self) -> CounterStats:
        """Statistics for monitoring.

        Raises:
            ClosedError: after close.
        """
    def __iter__(self) -> Counter: ...
    def __next__(self) -> int: ...
    def __reduce__(self) -> NoReturn: ...

@final
class CounterStats:
    """Statistics for monitoring. They cover all Counters in this process with the same name and store, from when the first
    of them was opened.
    """
    @property
    def in_hand(self) -> int:
        """How many numbers are in hand."""
    @property
    def step(self) -> int:
        """The size of the next segment."""
    @property
    def segments(self) -> int:
        """The number of times the store has handed out numbers."""
    @property
    def skipped(self) -> int:
        """How many numbers were skipped to keep each block consecutive and numbers increasing."""
    @property
    def waits(self) -> int:
        """The number of calls that found no number in hand and waited or failed."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Sequences:
    """Counts separately for each of many keys: 1, 2, 3 and so on for "alice", and the same for "bob". Use it to number the
    messages in an inbox or the versions of a document. It is safe to share between threads.

    Args:
        name: a name for the sequences, 1 to 100 characters.
        store: the address of a store, such as "postgres://host/chat?label=10.0.0.7:8080". While this process holds the
            lease, the errors in other processes show the label.
        sections: the number of bounds in the store, 1 to 16384. The keys in a section share a bound. The number cannot
            be changed later. Default: 1024.
        step: the size of a step, 1 to 1000000000 numbers. A bound is moved to two steps above its section's highest
            number. Default: 10000.
        max_keys: the maximum number of keys kept in memory, 1 to 1000000000. Each takes at most 40 bytes. Default:
            1000000.
        max_wait_ms: the maximum time that a call waits for the store, 0 to 4294967295. Default: 10000.

    A key is a str, or an int from -2**63 to 2**64-1; 5 and "5" are different keys. A key's numbers increase, and no
    number is issued twice, by any process, as long as the store does not lose writes that it has acknowledged. A key
    skips numbers if it was evicted from memory and is used again, and so do new keys after an eviction. After a process
    exits without calling close, all keys in a section continue above the section's bound, which is at most two steps
    above its highest number.

    Only the process that holds the lease issues numbers. The constructor waits for the lease, without the GIL, for at
    most the ``wait`` set in the address. All Sequences in a process with the same name and store share their keys.
    After a fork, the parent's Sequences do not work in the child.

    Raises:
        InvalidOptionError: if an option is invalid, if the sequences were created with a different number of sections,
            or if this process already uses them with different options.
        LeaseUnavailableError: if another process holds the lease (the message gives its label in backticks), or if the
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
        """Close these Sequences. From then on, calls raise ClosedError, including calls that are already waiting. Other
        Sequences with that name are not affected. A with block closes its Sequences on exit.

        Closing the last Sequences with a given name in this process stores each section's highest number, above which
        its keys then continue, and gives the lease back. This waits for the store, without the GIL, for at most 10 s.
        """
    def __enter__(self) -> Sequences: ...
    def __exit__(self, *_exception: object) -> None: ...
    def next_id(self, key: _Key) -> int:
        """Return the key's next number. If the key's section has reached its bound, or the lease was not renewed in time,
        wait for the store without the GIL, for at most max_wait_ms.

        Raises:
            LeaseUnavailableError: if another process, named in the message, now issues the numbers.
            LeaseLostError: if the lease could not be renewed, and was not regained within max_wait_ms.
            CounterUnavailableError: if the store did not move the section's bound within max_wait_ms, or at once if
                waiting would not help: the store refuses or has lost writes, or the section has reached 2**63-1.
            InvalidOptionError: if the key is an int that does not fit in 64 bits.
            ClosedError: after close.
            ForkedError: in a child of the process that opened the sequences.
        """
    def try_next_id(self, key: _Key) -> int:
        """Return the key's next number without waiting for the store. If that is not possible, the store is contacted in
        the background.

        Raises:
            PolyflakeError: for the same reasons as next_id, but at once.
        """
    def next_ids(self, keys: Iterable[_Key]) -> list[int]:
        """Return a list with one number per key, in the order of the keys. A key that occurs twice is given two. The keys
        may be any iterable except a str or bytes. If the call raises an exception, numbers may be lost, but are never
        issued again.

        Raises:
            PolyflakeError: for the same reasons as next_id.
        """
    async def next_id_async(self, key: _Key) -> int:
        """Like next_id, but for an asyncio event loop: waiting for the store does not block a thread. A number in hand is
        returned at once. If the task is cancelled, a number may be lost, but is never issued again.

        Raises:
            PolyflakeError: for the same reasons as next_id.
        """
    async def next_ids_async(self, keys: Iterable[_Key]) -> list[int]:
        """Like next_ids, but for an asyncio event loop: see next_id_async.

        Raises:
            PolyflakeError: for the same reasons as next_ids.
        """
    @property
    def name(self) -> str:
        """The name of the sequences."""
    @property
    def stats(self) -> SequencesStats:
        """Statistics for monitoring.

        Raises:
            ClosedError: after close.
            ForkedError: in a child of the process that opened the sequences.
        """
    def __reduce__(self) -> NoReturn: ...

@final
class SequencesStats:
    """Statistics for monitoring. They cover all Sequences in this process with the same name and store, from when the
    first of them was opened.
    """
    @property
    def keys(self) -> int:
        """The number of keys in memory."""
    @property
    def evicted(self) -> int:
        """The number of keys evicted from memory to make room for others."""
    @property
    def moves(self) -> int:
        """The number of times bounds were moved in the store."""
    @property
    def waits(self) -> int:
        """The number of calls that waited or gave up."""
    @property
    def time_left_ms(self) -> int:
        """How much longer numbers may be issued if the lease is not renewed, in ms; 0 if another process holds it."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Layout:
    """The meaning of an ID's bits: the fields from the highest bit down, the epoch, and the tick.

    ``Layout("twitter")`` is a preset; see PRESETS.
    ``Layout("timestamp:41|worker:10|sequence:12@1288834974657/1ms")`` creates a layout from a layout string, with the
    epoch in Unix ms and the tick as Nms or Ns.
    ``Layout(fields={"timestamp": 41, "worker": 10, "sequence": 12}, epoch_ms=1288834974657)`` creates the same layout
    from its parts, highest field first; tick_ms is 1 by default.
    ``str(layout)`` returns the layout string.

    Raises:
        InvalidLayoutError: if the layout is invalid.
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
            InvalidIdError: if the ID has bits set outside the layout.
        """
    def decode_all(self, buffer: Buffer | _Array) -> DecodedAll:
        """Decode all IDs in a contiguous buffer of 8-byte integers, such as an array.array("Q"), a memoryview or a NumPy
        array. The formats are Q and q, and L and l if they have 8 bytes. The buffer may be read-only.

        The IDs are copied, so the buffer may change afterwards. Nothing else may write to it during the call.

        Raises:
            TypeError or BufferError: if the buffer is not of this kind.
            InvalidIdError: if an ID is negative or has bits set outside the layout. The message names the first such
                ID.
        """
    def compose(self, time: _Time, node: _Node | None, sequence: SupportsIndex) -> int:
        """Build an ID from a time, a node and a sequence number.

        Args:
            time: a datetime with a time zone, or an int of Unix ms, rounded down to the tick.
            node: an int, a mapping of field names to ints, or None if the layout has no node field.

        The ID may equal one that was already issued.

        Raises:
            TimeOutOfRangeError: if the time is before the epoch or past the layout's end.
            InvalidNodeError: if the node does not fit the layout.
            InvalidOptionError: if the sequence number does not fit the layout, or the time has no time zone.
        """
    def min_id(self, time: _Time) -> int:
        """Return the lowest ID at or after a time: a datetime with a time zone, or an int of Unix ms.

        Raises:
            TimeOutOfRangeError: if the layout has no ID for this time.
            InvalidLayoutError: if a node field is above the timestamp.
            InvalidOptionError: if the time has no time zone.
        """
    def max_id(self, time: _Time) -> int:
        """Return the highest ID at or before a time: a datetime with a time zone, or an int of Unix ms.

        Raises:
            TimeOutOfRangeError: if the layout has no ID for this time.
            InvalidLayoutError: if a node field is above the timestamp.
            InvalidOptionError: if the time has no time zone.
        """
    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, highest first."""
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
        """The number of IDs that one node can issue in a tick."""
    @property
    def nodes(self) -> int:
        """The number of nodes the layout can distinguish."""
    @property
    def total_bits(self) -> int:
        """The combined width of all fields, in bits."""
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
        """The combined width of all node fields, in bits."""
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
    """A decoded ID."""
    @property
    def id(self) -> int:
        """The ID."""
    @property
    def layout(self) -> Layout:
        """The layout used to decode the ID."""
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
        """All node bits as one number, highest field first."""
    @property
    def fields(self) -> dict[str, int]:
        """The values of the node fields by name, highest field first."""
    @property
    def sequence(self) -> int:
        """The sequence number within the tick."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Callable[[SupportsIndex], Decoded], tuple[int]]: ...

@final
class DecodedAll:
    """Many decoded IDs, as columns. Each column is a read-only memoryview with one value per ID, in the same order, and is
    created when it is first read.

    ``numpy.asarray(column)`` does not copy the column. ``ids`` has format Q (uint64), and all other columns have format
    q (int64), so ``numpy.asarray(decoded.timestamps_ms).view("datetime64[ms]")`` returns the times.
    """
    @property
    def ids(self) -> memoryview:
        """The IDs."""
    @property
    def layout(self) -> Layout:
        """The layout used to decode the IDs."""
    @property
    def timestamps_ms(self) -> memoryview:
        """The start of each ID's tick, in Unix ms."""
    @property
    def ticks(self) -> memoryview:
        """The number of ticks since the epoch."""
    @property
    def nodes(self) -> memoryview:
        """All node bits as one number, highest field first."""
    @property
    def fields(self) -> dict[str, memoryview]:
        """The columns of the node fields by name, highest field first."""
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
    """Turns IDs into short strings for outsiders, such as ``order_15ShV20Bxc6UJvKSQbDvo0J``, and back. The string hides
    when and where the ID was issued, and can be decoded without a lookup table.

    Args:
        keys: the keys, each ``pfk_`` and 23 base62 digits: an iterable of str, or one str with keys separated by
            whitespace or commas. The first key is used for encoding, so an unordered set is rejected. Every key is used
            for decoding. `generate_key` and ``polyflake public key`` generate keys.
        prefix: the beginning of every string: words made of a-z and 0-9, joined by ``_``, at most 24 characters in all,
            or "".

    A PublicIds takes a few KiB of memory, and threads may share it. Its repr does not show the keys. When it is
    dropped, it wipes the keys from its memory, but Python still holds the strings you passed in.

    Raises:
        InvalidOptionError: if a key or the prefix is invalid, if two keys have the same number or the same bytes, or if
            there are no keys or more than 16. The message does not show any part of a key.

    >>> from polyflake import PublicIds
    >>> orders = PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "order")
    >>> orders.encode(1541815603606036480)
    'order_15ShV20Bxc6UJvKSQbDvo0J'
    >>> orders.decode("order_15ShV20Bxc6UJvKSQbDvo0J")
    1541815603606036480
    """
    def __new__(cls, keys: str | Iterable[str], prefix: str) -> PublicIds: ...
    def encode(self, id: SupportsIndex) -> str:
        """Encode an ID as a string.

        Raises:
            InvalidIdError: if the ID does not fit in 64 bits.
        """
    def encode_all(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """Encode an iterable of IDs, such as those on a page of rows.

        Raises:
            InvalidIdError: if an ID does not fit in 64 bits.
        """
    def decode(self, text: str) -> int:
        """Decode a string.

        A string that was not encoded with this prefix and one of these keys is accepted with a probability of 2**-64.

        Raises:
            InvalidIdError: for any other string; the message gives the reason.
        """
    def decode_all(self, texts: Iterable[str]) -> list[int]:
        """Decode an iterable of strings.

        Raises:
            InvalidIdError: if one of them is not an encoded ID; the message gives the reason.
        """
    @staticmethod
    def generate_key(number: SupportsIndex | None = None) -> str:
        """Generate a key from the operating system's random bytes. Keep it where you keep secrets.

        Args:
            number: the key's number, from 0 to 61. Every encoded ID names its key by this number, so give each key a
                different one. Default: 0.

        Raises:
            InvalidOptionError: if the number is outside this range.
        """
    @property
    def prefix(self) -> str:
        """The prefix of the strings."""
    @property
    def key_numbers(self) -> tuple[int, ...]:
        """The keys' numbers, in the order of the keys. The first key is used for encoding."""
    def __copy__(self) -> PublicIds: ...
    def __deepcopy__(self, memo: object, /) -> PublicIds: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Stats:
    """Statistics for monitoring, counted since the cursor was created. They are updated only on slow paths."""
    @property
    def waits(self) -> int:
        """The number of calls that found no free slot and waited or failed."""
    @property
    def rollbacks(self) -> int:
        """The number of times the clock was seen to step back, whether or not the step was tolerated."""
    @property
    def lead_ms(self) -> int:
        """How far ahead of the clock the last tick taken is, in ms; 0 if it is not ahead."""
    @property
    def last_issued_ms(self) -> int | None:
        """The start of the last ID's tick, in Unix ms, or None before the first ID."""
    @property
    def lease_losses(self) -> int:
        """The number of times the lease was lost, because it expired or another process had its node."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Lease:
    """A snapshot of a Snowflake's lease, from Snowflake.lease."""
    @property
    def node(self) -> int:
        """The leased node, or the last one leased if none is held now."""
    @property
    def bound_ms(self) -> int:
        """The time until which IDs may be issued without a reply from the store, in Unix ms; 0 if no node is held now."""
    @property
    def left_ms(self) -> int:
        """The number of ms left until bound_ms."""
    @property
    def store(self) -> str:
        """The store's address, without secrets."""
    @property
    def state(self) -> Literal["held", "unreachable", "lost", "closed"]:
        """One of "held", "unreachable" (the store did not answer the last request, and IDs are issued until the bound),
        "lost" (the lease expired, and no IDs are issued until the store renews it or leases another node), or "closed".
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
