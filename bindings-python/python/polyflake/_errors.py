"""The exceptions, one for each permanent error code."""


class PolyflakeError(Exception):
    """Any error from Polyflake. The message says what is wrong and what would be valid."""

    #: The error's permanent number, the same in every language.
    code = 0
    #: The error's permanent name, the same in every language.
    name = ""


class InvalidLayoutError(PolyflakeError, ValueError):
    """The layout is invalid."""

    code = 1
    name = "invalid_layout"


class UnknownLayoutError(PolyflakeError, ValueError):
    """No preset has this name."""

    code = 2
    name = "unknown_layout"


class InvalidNodeError(PolyflakeError, ValueError):
    """A node field is missing, unknown or out of range."""

    code = 3
    name = "invalid_node"


class InvalidOptionError(PolyflakeError, ValueError):
    """The name or value of any other option is invalid."""

    code = 4
    name = "invalid_option"


class InvalidIdError(PolyflakeError, ValueError):
    """The ID does not fit the layout, or the string is not an ID."""

    code = 5
    name = "invalid_id"


class TimeOutOfRangeError(PolyflakeError, OverflowError):
    """The time is before the epoch or past the layout's end."""

    code = 6
    name = "time_out_of_range"


class ClockMovedBackwardsError(PolyflakeError, RuntimeError):
    """The clock has stepped back by more than ``max_backward_ms``."""

    code = 7
    name = "clock_moved_backwards"

    def __init__(self, message: str, behind_ms: int = 0, retry_after_ms: int = 0) -> None:
        super().__init__(message)
        #: How many ms the clock is behind the last ID, less max_ahead_ms.
        self.behind_ms = behind_ms
        #: The number of ms that the clock must advance before the next ID.
        self.retry_after_ms = retry_after_ms


class SequenceExhaustedError(PolyflakeError, RuntimeError):
    """No ID became available within the time the call was allowed to wait."""

    code = 8
    name = "sequence_exhausted"

    def __init__(self, message: str, retry_after_ms: int = 0) -> None:
        super().__init__(message)
        #: The number of ms that the clock must advance before the next ID.
        self.retry_after_ms = retry_after_ms


class ForkedError(PolyflakeError, RuntimeError):
    """A parent process created the Snowflake or Sequences, or started the call."""

    code = 9
    name = "forked"


class ClockFailedError(PolyflakeError, RuntimeError):
    """The custom clock raised an exception (see ``__cause__``), or did not return Unix ms."""

    code = 10
    name = "clock_failed"


class StateFileError(PolyflakeError, OSError):
    """The state file cannot be used, or belongs to another layout or node."""

    code = 11
    name = "state_file"


class LeaseUnavailableError(PolyflakeError, OSError):
    """No node is free, another process holds the Sequences, or the store cannot be reached."""

    code = 12
    name = "lease_unavailable"


class LeaseLostError(PolyflakeError, RuntimeError):
    """The lease expired. No IDs are issued until the store renews it or leases another node."""

    code = 13
    name = "lease_lost"

    def __init__(self, message: str, retry_after_ms: int = 0) -> None:
        super().__init__(message)
        #: The number of ms until the store is queried again.
        self.retry_after_ms = retry_after_ms


class ClosedError(PolyflakeError, RuntimeError):
    """The Snowflake, Counter or Sequences object was closed."""

    code = 14
    name = "closed"


class CounterUnavailableError(PolyflakeError, OSError):
    """No number is available: the store did not hand one out, or there are none left."""

    code = 15
    name = "counter_unavailable"


class InternalError(PolyflakeError, RuntimeError):
    """A bug in Polyflake. Please report it."""

    code = 99
    name = "internal"


#: Maps each code to its exception, for the native half of the package.
BY_CODE: dict[int, type[PolyflakeError]] = {
    error.code: error for error in PolyflakeError.__subclasses__()
}

# Tracebacks then name the module that programs import the exceptions from.
for _error in (PolyflakeError, *BY_CODE.values()):
    _error.__module__ = "polyflake"
