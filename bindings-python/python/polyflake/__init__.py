"""64-bit, time-ordered, unique IDs (Snowflakes) and counters, the same in every language.

>>> from polyflake import Snowflake
>>> ids = Snowflake(node=7)
>>> id = ids.next_id()
>>> ids.decode(id).node
7
"""

from polyflake._errors import (
    ClockFailedError,
    ClockMovedBackwardsError,
    ClosedError,
    CounterUnavailableError,
    ForkedError,
    InternalError,
    InvalidIdError,
    InvalidLayoutError,
    InvalidNodeError,
    InvalidOptionError,
    LeaseLostError,
    LeaseUnavailableError,
    PolyflakeError,
    SequenceExhaustedError,
    StateFileError,
    TimeOutOfRangeError,
    UnknownLayoutError,
)
from polyflake._polyflake import (
    PRESETS,
    Counter,
    CounterStats,
    Decoded,
    DecodedAll,
    Field,
    Layout,
    Lease,
    PublicIds,
    Sequences,
    SequencesStats,
    Snowflake,
    Stats,
    __version__,
    _load,
    format_id,
    parse_id,
    reset_state,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from polyflake._generator import IdGenerator

__all__ = [
    "PRESETS",
    "ClockFailedError",
    "ClockMovedBackwardsError",
    "ClosedError",
    "Counter",
    "CounterStats",
    "CounterUnavailableError",
    "Decoded",
    "DecodedAll",
    "Field",
    "ForkedError",
    "IdGenerator",
    "InternalError",
    "InvalidIdError",
    "InvalidLayoutError",
    "InvalidNodeError",
    "InvalidOptionError",
    "Layout",
    "Lease",
    "LeaseLostError",
    "LeaseUnavailableError",
    "PolyflakeError",
    "PublicIds",
    "SequenceExhaustedError",
    "Sequences",
    "SequencesStats",
    "Snowflake",
    "StateFileError",
    "Stats",
    "TimeOutOfRangeError",
    "UnknownLayoutError",
    "__version__",
    "format_id",
    "parse_id",
    "reset_state",
]


def __getattr__(name: str) -> object:
    # A Protocol needs `typing`, which takes longer to import than the rest of the package.
    if name == "IdGenerator":
        globals()[name] = generator = _load("polyflake._generator").IdGenerator
        return generator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
