"""The interface that Snowflakes, Counters and a program's own generators share."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable


@runtime_checkable
class IdGenerator(Protocol):
    """Something that generates unique 64-bit IDs: a Snowflake, a Counter, or your own generator.

    Use it as the type of a parameter that takes any of them. ``isinstance`` checks for the methods.

    >>> from collections.abc import Iterator
    >>> from itertools import count, islice
    >>> from polyflake import IdGenerator, Snowflake
    >>> class Fixed:
    ...     '''For tests: 42, 43, 44 and so on.'''
    ...     def __init__(self) -> None:
    ...         self.numbers = count(42)
    ...     def next_id(self) -> int:
    ...         return next(self.numbers)
    ...     def next_ids(self, n: int) -> list[int]:
    ...         return list(islice(self.numbers, n))
    ...     def __iter__(self) -> Iterator[int]:
    ...         return self.numbers
    >>> def insert(ids: IdGenerator) -> int:
    ...     return ids.next_id()
    >>> insert(Fixed())
    42
    >>> insert(Snowflake(node=7)) > 0
    True
    """

    def next_id(self) -> int:
        """Return the next ID."""
        ...

    def next_ids(self, n: int, /) -> list[int]:
        """Return a list of the next n IDs."""
        ...

    def __iter__(self) -> Iterator[int]:
        """Return the generator as an iterator that never ends."""
        ...
