"""If a process loads the library twice, the copies cannot share cursors, and a warning says so."""

import shutil
import subprocess
import sys
from pathlib import Path

import polyflake
import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="copies are found on Linux")
def test_a_second_copy_in_the_process_is_warned_of(tmp_path: Path) -> None:
    here = Path(polyflake._polyflake.__file__)
    copy = shutil.copy(here, tmp_path / "copy.so")
    imports = (
        "import ctypes, sys, warnings; warnings.simplefilter('error');"
        "ctypes.CDLL(sys.argv[1]); import polyflake"
    )

    def run(library: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", imports, str(library)], capture_output=True, text=True
        )

    alone = run(here)
    assert (alone.returncode, alone.stderr) == (0, "")
    both = run(copy)
    assert both.returncode == 1
    last = both.stderr.splitlines()[-1]
    assert last.startswith("RuntimeWarning: this process has loaded Polyflake more than once,")
    assert str(copy) in last
    assert str(here) in last
