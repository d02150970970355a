"""The programs in README.md run, and print what the comments behind their prints say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_there_are_programs() -> None:
    assert len(PROGRAMS) == 5


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: str, tmp_path: Path) -> None:
    # In a new process, since nodes are shared in this one.
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    prints = re.findall(r"^ *print\(.*\)  # (.*)$", program, re.MULTILINE)
    assert ran.stdout.splitlines() == prints
