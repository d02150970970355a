"""The exceptions, one for each permanent error code."""

from typing import ClassVar


class PolyflakeError(Exception):
    """Any refusal by Polyflake. The message names the value and what would fit."""

    #: The error's permanent number, the same in every language.
    code: ClassVar[int] = 0
    #: The error's permanent name, the same in every language.
    name: ClassVar[str] = ""


class InvalidLayoutError(PolyflakeError, ValueError):
    """A layout that cannot work."""

    code = 1
    name = "invalid_layout"


class UnknownLayoutError(PolyflakeError, ValueError):
    """No preset of that name."""

    code = 2
    name = "unknown_layout"


class InvalidNodeError(PolyflakeError, ValueError):
    """A node field missing, unknown or out of range."""

    code = 3
    name = "invalid_node"


class InvalidOptionError(PolyflakeError, ValueError):
    """Any other option's value or name."""

    code = 4
    name = "invalid_option"


class InvalidIdError(PolyflakeError, ValueError):
    """An ID outside its layout, or a text that is no ID."""

    code = 5
    name = "invalid_id"


class TimeOutOfRangeError(PolyflakeError, OverflowError):
    """Before the epoch or past the layout's end."""

    code = 6
    name = "time_out_of_range"


class ClockMovedBackwardsError(PolyflakeError, RuntimeError):
    """The clock stands further back than ``max_backward_ms`` allows."""

    code = 7
    name = "clock_moved_backwards"

    def __init__(self, message: str, behind_ms: int = 0, retry_after_ms: int = 0) -> None:
        super().__init__(message)
        #: By how many ms the clock stands behind the last ID.
        self.behind_ms = behind_ms
        #: After how many ms of the clock the next ID can come.
        self.retry_after_ms = retry_after_ms


class SequenceExhaustedError(PolyflakeError, RuntimeError):
    """No ID came free within the time the call may wait."""

    code = 8
    name = "sequence_exhausted"

    def __init__(self, message: str, retry_after_ms: int = 0) -> None:
        super().__init__(message)
        #: After how many ms of the clock the next ID can come.
        self.retry_after_ms = retry_after_ms


class ForkedError(PolyflakeError, RuntimeError):
    """Used in a child of the process that made it."""

    code = 9
    name = "forked"


class ClockFailedError(PolyflakeError, RuntimeError):
    """The caller's clock raised (see ``__cause__``) or returned no time."""

    code = 10
    name = "clock_failed"


class StateFileError(PolyflakeError, OSError):
    """The state file cannot be opened, or belongs to another layout or node."""

    code = 11
    name = "state_file"


class LeaseUnavailableError(PolyflakeError, OSError):
    """No free worker, or the store cannot be reached."""

    code = 12
    name = "lease_unavailable"


class LeaseLostError(PolyflakeError, RuntimeError):
    """The lease ran out; nothing more is issued on it."""

    code = 13
    name = "lease_lost"


class ClosedError(PolyflakeError, RuntimeError):
    """Used after ``close``."""

    code = 14
    name = "closed"


class InternalError(PolyflakeError, RuntimeError):
    """A bug in Polyflake: please report it."""

    code = 99
    name = "internal"


#: The exception of each code, for the native half.
BY_CODE: dict[int, type[PolyflakeError]] = {
    error.code: error for error in PolyflakeError.__subclasses__()
}
