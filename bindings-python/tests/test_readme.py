"""The programs in README.md run, and print what their comments say they print."""

import re
import subprocess
import sys
from pathlib import Path

import polyflake
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_there_are_programs() -> None:
    assert len(PROGRAMS) == 5


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: str, tmp_path: Path) -> None:
    # In a new process, because the tests in this one share nodes.
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    prints = re.findall(r"^ *print\(.*\)  # (.*)$", program, re.MULTILINE)
    assert ran.stdout.splitlines() == prints


def test_an_import_loads_little() -> None:
    """The modules imported at startup are left out, since some of them load `typing` and more."""
    package = Path(polyflake.__file__).parents[1]
    program = f"""
import os, sys  # os is there in every start
sys.path.insert(0, {str(package)!r})
before = set(sys.modules)
import polyflake
print(*sorted(set(sys.modules) - before))
from polyflake import IdGenerator
print(isinstance(polyflake.Snowflake(node=7), IdGenerator))
"""
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    loaded, is_one = ran.stdout.splitlines()
    ours = {"polyflake", *(f"polyflake._{name}" for name in ("errors", "load", "polyflake"))}
    # The modules that datetime needs depend on the version of Python.
    assert set(loaded.split()) <= ours | {
        *("datetime", "_datetime", "_pydatetime", "math", "operator", "_operator")
    }
    assert is_one == "True"


def test_there_is_nothing_else_to_load() -> None:
    with pytest.raises(AttributeError, match=r"module 'polyflake' has no attribute 'Snowflakes'"):
        polyflake.Snowflakes  # noqa: B018
