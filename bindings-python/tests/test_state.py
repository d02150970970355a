"""State files: one node for all processes on a host."""

import itertools
import os
import subprocess
import sys
from array import array
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from polyflake import (
    ClosedError,
    ForkedError,
    InvalidOptionError,
    Snowflake,
    StateFileError,
    reset_state,
)
from support import in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="state files need Unix")


def test_a_snowflake_from_before_a_fork_works_in_the_children(tmp_path: Path) -> None:
    global shared
    shared = Snowflake(node=600, state=tmp_path / "state", max_wait_ms=60_000)
    first = shared.next_id()
    with get_context("fork").Pool(4) as pool:
        batches = pool.map(take, [500] * 16)
    ids = [first, *(id_ for batch in batches for id_ in batch), *shared.next_ids(500)]
    assert len(set(ids)) == len(ids) == 1 + 16 * 500 + 500
    assert max(ids) == ids[-1]


shared: Snowflake


def take(n: int) -> list[int]:
    own = [shared.next_id() for _ in range(n // 2)]
    return [*own, *shared.next_ids(n - n // 2)]


def test_separate_processes_share_a_file(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        batches = list(pool.map(take_separately, [state] * 8))
    ids = [id_ for batch in batches for id_ in batch]
    assert len(set(ids)) == len(ids) == 8 * 1000


def take_separately(state: str) -> list[int]:
    with Snowflake(node=601, state=state, max_wait_ms=60_000) as ids:
        return ids.next_ids(1000)


def test_a_killed_process_leaves_the_file_usable(tmp_path: Path) -> None:
    state = tmp_path / "state"
    program = (
        "import os, signal, sys\nfrom polyflake import Snowflake\n"
        f"ids = Snowflake(node=602, state={str(state)!r}, max_wait_ms=60_000)\n"
        "print(ids.next_ids(5000)[-1], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    last = 0
    for _ in range(3):
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
        assert ran.returncode == -9, ran.stderr
        assert int(ran.stdout) > last
        last = int(ran.stdout)
    assert Snowflake(node=602, state=state, max_wait_ms=60_000).next_id() > last


def test_calls_after_close_raise_closed(tmp_path: Path) -> None:
    other = Snowflake(node=603, state=tmp_path / "state")
    with Snowflake(node=603, state=tmp_path / "state") as ids:
        assert isinstance(ids, Snowflake)
        first = ids.next_id()
    ids.close()
    calls: list[Callable[[], object]] = [
        ids.next_id,
        ids.try_next_id,
        lambda: next(ids),
        lambda: ids.next_ids(10),
        lambda: ids.next_ids(20_000),
        lambda: ids.fill(array("Q", [0])),
        lambda: ids.fill(array("Q")),
        lambda: ids.stats,
    ]
    for call in calls:
        with pytest.raises(ClosedError, match="closed: "):
            call()
    assert ids.decode(first).node == 603
    assert other.next_id() > first


def test_a_with_block_closes_it_and_passes_an_exception_on() -> None:
    with pytest.raises(KeyError), Snowflake(node=604) as ids:
        raise KeyError("mine")
    with pytest.raises(ClosedError):
        ids.next_id()


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"precious")
    with pytest.raises(StateFileError, match="state file") as raised:
        Snowflake(node=605, state=tmp_path / "other")
    assert isinstance(raised.value, OSError)
    assert (tmp_path / "other").read_bytes() == b"precious"
    with pytest.raises(StateFileError, match="created"):
        Snowflake(node=605, state=tmp_path / "missing" / "state")
    with pytest.raises(InvalidOptionError, match="state"):
        Snowflake(node=605, state="")
    for wrong in (1, True, b"bytes", 1.5):
        with pytest.raises(TypeError, match=r"state must be a str or an os\.PathLike"):
            Snowflake(node=605, state=wrong)  # type: ignore[arg-type]


def test_a_node_has_a_file_or_none(tmp_path: Path) -> None:
    plain = Snowflake(node=606)
    with pytest.raises(InvalidOptionError, match="state file"):
        Snowflake(node=606, state=tmp_path / "state")
    plain.next_id()
    kept = Snowflake(node=607, state=tmp_path / "state")
    with pytest.raises(InvalidOptionError, match="state file"):
        Snowflake(node=607)
    kept.next_id()


def test_a_cursor_far_ahead_must_be_reset(tmp_path: Path) -> None:
    state = tmp_path / "state"
    # The clock advances on every reading, because a new file's first ID may have to wait for it.
    clock = itertools.count(3_471_292_800_000, 100).__next__
    ahead = Snowflake(node=608, state=state, clock=clock, max_wait_ms=60_000)
    ahead.next_id()
    with pytest.raises(StateFileError, match="reset_state"):
        Snowflake(node=608, state=state)
    reset_state(state)
    with pytest.raises(StateFileError, match="replaced"):
        ahead.next_id()
    assert Snowflake(node=608, state=state).next_id() > 0
    with pytest.raises(StateFileError):
        reset_state(tmp_path / "missing")


def test_a_custom_clock_with_a_file_continues(tmp_path: Path) -> None:
    state = tmp_path / "state"
    # The clock advances on every reading, because a new file's first ID may have to wait for it.
    clock = itertools.count(1_700_000_000_000, 100).__next__
    made = Snowflake(node=609, state=state, clock=clock, max_wait_ms=60_000)
    first = made.next_id()
    now = made.decode(first).timestamp_ms
    assert Snowflake(node=609, state=state, clock=lambda: now - 500).next_id() == first + 1


def test_a_fork_without_a_file_is_an_error(tmp_path: Path) -> None:
    plain = Snowflake(node=610)

    def child() -> bool:
        for call in (plain.next_id, lambda: Snowflake(node=610, state=tmp_path / "state")):
            with pytest.raises(ForkedError, match="state file"):
                call()
        return True

    assert in_child(child) is True
