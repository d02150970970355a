"""Only one interpreter in a process can use Polyflake: the first to import it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from support import HAS_GIL

pytestmark = [
    pytest.mark.skipif(sys.implementation.name != "cpython", reason="interpreters of CPython"),
    # Turns a program that never exits into a failure.
    pytest.mark.timeout(300),
]

# Interpreters that share the GIL, as in mod_wsgi, or, from Python 3.12 on, each have their own.
SETUP = """
import sys
import threading

if sys.version_info >= (3, 13):
    import _interpreters

    def create(gil="shared"):
        return _interpreters.create("legacy" if gil == "shared" else "isolated")

    def run(interpreter, code):
        failed = _interpreters.exec(interpreter, code)
        assert failed is None, failed

    destroy = _interpreters.destroy
else:
    import _xxsubinterpreters

    def create(gil="shared"):
        return _xxsubinterpreters.create(isolated=gil != "shared")

    run, destroy = _xxsubinterpreters.run_string, _xxsubinterpreters.destroy

TRY = '''
import os, sys

def tell(text):
    os.write(1, text.encode() + bytes([10]))

try:
    import polyflake
except ImportError as error:
    assert "polyflake._polyflake" not in sys.modules
    tell(f"refused: {error}")
else:
    tell("imported")
'''

# Python itself refuses modules of PyO3 in an interpreter with its own GIL, unless this is off.
# Builds without a GIL do not let it be turned off.
UNCHECKED = "import _imp; _imp._override_multi_interp_extensions_check(-1)"
"""

# Runs its argument after each of two initializations.
PROGRAM = """
#include <Python.h>

int main(int count, char **arguments) {
    for (int n = 0; n < 2; n++) {
        Py_Initialize();
        if (PyRun_SimpleString(arguments[1]) != 0) return 1;
        if (Py_FinalizeEx() != 0) return 1;
    }
    return 0;
}
"""


def ran(code: str) -> list[str]:
    """The lines printed by a program."""
    # Python 3.14 and later warn about interpreters that still exist on exit.
    command = [sys.executable, "-W", "ignore:remaining subinterpreters", "-c", SETUP + code]
    program = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (program.returncode, program.stderr) == (0, "")
    return program.stdout.splitlines()


def outcomes(code: str) -> list[str]:
    return [line.partition(":")[0] for line in ran(code)]


def test_another_interpreter_is_refused_and_told_why() -> None:
    lines = ran("""
exec(TRY)
run(create(), TRY * 2)
exec(TRY)
""")
    assert [line.partition(":")[0] for line in lines] == [
        "imported",
        "refused",
        "refused",
        "imported",
    ]
    assert "another interpreter of this process" in lines[1]
    assert "WSGIApplicationGroup %{GLOBAL}" in lines[1]


def test_the_first_need_not_be_the_main_one() -> None:
    """mod_wsgi runs each application in an interpreter that it creates."""
    lines = outcomes("""
first = create()
run(first, TRY + '''
ids = polyflake.Snowflake(node=7)
assert len(set(ids.next_ids(10_000))) == 10_000
try:
    polyflake.Layout("unheard of")
except polyflake.UnknownLayoutError:
    tell("caught")
''')
exec(TRY)
run(create(), TRY)
run(first, TRY + "assert ids.next_id() < ids.next_id()")
""")
    assert lines == ["imported", "caught", "refused", "refused", "imported"]


def test_it_is_refused_after_the_end_of_the_first_interpreter() -> None:
    """The objects cached by the native half belong to the first interpreter."""
    lines = outcomes("""
first = create()
run(first, TRY)
destroy(first)
exec(TRY)
run(create(), TRY)
""")
    assert lines == ["imported", "refused", "refused"]


def test_another_name_does_not_help() -> None:
    lines = outcomes("""
import polyflake._polyflake
run(create(), '''
import os
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
loader = ExtensionFileLoader("mine._polyflake", %r)
module = module_from_spec(spec_from_loader(loader.name, loader))
try:
    loader.exec_module(module)
except ImportError:
    assert not hasattr(module, "Snowflake")
    os.write(1, b"refused")
''' % polyflake._polyflake.__file__)
""")
    assert lines == ["refused"]


def test_the_same_interpreter_may_import_it_again() -> None:
    lines = outcomes("""
exec(TRY)
first = polyflake.Snowflake
for name in [name for name in sys.modules if name.startswith("polyflake")]:
    del sys.modules[name]
exec(TRY)
assert polyflake.Snowflake is first
import importlib
importlib.reload(polyflake)
importlib.reload(polyflake._polyflake)
tell("reloaded")
""")
    assert lines == ["imported", "imported", "reloaded"]


@pytest.mark.skipif(sys.platform == "win32", reason="the path in an address")
def test_leases_work_in_another_than_the_main_interpreter(tmp_path: Path) -> None:
    """Nothing is logged: the thread would belong to the main interpreter, or outlive its own."""
    lines = outcomes(f"""
run(create(), TRY + '''
with polyflake.Snowflake(lease="sqlite://{tmp_path}/leases.db") as ids:
    assert len(set(ids.next_ids(10_000))) == 10_000
    tell(ids.lease.state)
''')
""")
    assert lines == ["imported", "held"]


@pytest.mark.skipif(sys.platform == "win32", reason="compiles a program in C")
def test_it_is_refused_after_another_initialization(tmp_path: Path) -> None:
    """The new main interpreter has the same ID as the previous one."""
    config = sysconfig.get_config_vars()
    headers, folder, version = config["INCLUDEPY"], config["LIBDIR"], config["LDVERSION"]
    if (
        shutil.which("cc") is None
        or not Path(headers, "Python.h").exists()
        or not list(Path(folder).glob(f"libpython{version}.*"))
    ):
        pytest.skip("needs cc, Python.h and libpython")
    (tmp_path / "program.c").write_text(PROGRAM)
    python = f"-lpython{version}"
    if sys.platform == "linux":
        # If the library is static, also link the parts that only standard library modules call.
        python = f"-Wl,--whole-archive {python} -Wl,--no-whole-archive"
    options = f"-I{headers} -L{folder} -Wl,-rpath,{folder} -rdynamic {python} -lm"
    compile = ["cc", "program.c", "-o", "program", *options.split(), *config["LIBS"].split()]
    subprocess.run(compile, check=True, cwd=tmp_path)
    code = f"import sys; sys.path[:] = {sys.path!r}\n"
    program = subprocess.run(
        [tmp_path / "program", code + SETUP + "exec(TRY)"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (program.returncode, program.stderr) == (0, "")
    lines = program.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["imported", "refused"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_has_the_interpreter_of_its_parent() -> None:
    lines = outcomes("""
import os
exec(TRY)
child = os.fork()
if child == 0:
    run(create(), TRY)
    del sys.modules["polyflake._polyflake"], sys.modules["polyflake"]
    exec(TRY)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""")
    assert lines == ["imported", "refused", "imported"]


@pytest.mark.skipif(
    sys.version_info < (3, 12),
    reason="before Python 3.12 all interpreters share a GIL",
)
def test_an_interpreter_with_its_own_gil_is_refused() -> None:
    """Python itself usually refuses the import, which then does not count as the first one."""
    lines = outcomes(f"""
run(create("own"), TRY)
exec(TRY)
if {HAS_GIL}:
    run(create("own"), UNCHECKED + TRY)
""")
    assert lines == ["refused", "imported", "refused"][: 2 + HAS_GIL]


@pytest.mark.parametrize("gil", ["shared", "own"])
def test_of_interpreters_that_import_it_at_once_one_has_it(gil: str) -> None:
    if gil == "own" and sys.version_info < (3, 13):
        pytest.skip("Python 3.12 itself does not survive interpreters that run at once")
    if gil == "own" and not HAS_GIL:
        pytest.skip("Python itself refuses all of them")
    lines = outcomes(f"""
interpreters = [create("{gil}") for _ in range(8)]
for interpreter in interpreters:
    # One after the other: Python itself does not survive some of this at once.
    run(interpreter, "import collections.abc, datetime, operator, typing")
    if "{gil}" == "own":
        run(interpreter, UNCHECKED)
together = threading.Barrier(8)

def one(interpreter):
    together.wait()
    run(interpreter, TRY)

threads = [threading.Thread(target=one, args=(it,)) for it in interpreters]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""")
    assert sorted(lines) == ["imported", *["refused"] * 7]
