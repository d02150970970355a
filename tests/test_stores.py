"""Bindings built with a single store or none: other stores' addresses cause a clear error."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# Nothing is listening on their port.
ADDRESSES = {
    "etcd": "etcd://127.0.0.1:1",
    "mysql": "mysql://127.0.0.1:1/d",
    "postgres": "postgres://127.0.0.1:1/d",
    "redis": "redis://127.0.0.1:1",
    "sqlite": "sqlite:///nowhere/counters.db",
    "zookeeper": "zookeeper://127.0.0.1:1",
}

# Each program is given a wait in milliseconds and an address for each store, opens a counter there,
# and prints a line that says why this fails.
PYTHON = """
import sys
from polyflake import Counter, PolyflakeError
for wait, address in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        Counter("c", store=address, max_wait_ms=int(wait))
    except PolyflakeError as error:
        print(str(error).replace("\\n", " "))
"""

NODE = """
const [file, ...given] = process.argv.slice(1);
const { openCounter } = require(file);
const made = (number, name, message) => new Error(message);
async function main() {
  for (let at = 0; at < given.length; at += 2) {
    const options = ["store", given[at + 1], "maxWaitMs", given[at]];
    const opening = new Promise((_, failed) => openCounter(made, "c", options, failed));
    await opening.catch(({ message }) => console.log(message.replaceAll("\\n", " ")));
  }
}
main();
"""

C = """
import ctypes, sys
class Detail(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("ms", ctypes.c_uint64 * 2), ("message", ctypes.c_char * 496)
    ]
library = ctypes.CDLL(sys.argv[1])
library.polyflake_options_new.restype = ctypes.c_void_p
for wait, address in zip(sys.argv[2::2], sys.argv[3::2]):
    options = ctypes.c_void_p(library.polyflake_options_new())
    for name, value in {"name": "c", "store": address, "max_wait_ms": wait}.items():
        library.polyflake_options_set(options, name.encode(), value.encode(), None)
    detail = Detail(ctypes.sizeof(Detail))
    counter = ctypes.c_void_p()
    assert library.polyflake_counter_open(options, ctypes.byref(counter), ctypes.byref(detail))
    print(detail.message.decode().replace("\\n", " "))
"""


def output(*command: object, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("built", [*ADDRESSES, "none"])
def test_one_store(built: str, tmp_path: Path) -> None:
    flags = output("tools/stores", POLYFLAKE_STORES=built).split()
    crates = [part for name in ("c", "node", "python") for part in ("-p", f"polyflake-{name}")]
    # Built the way maturin does, without linking Python's library.
    python = {"PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": sys.executable}
    output("cargo", "build", "-q", "--locked", *crates, *flags, **python)
    package = shutil.copytree(ROOT / "bindings-python/python/polyflake", tmp_path / "polyflake")
    shutil.copy(TARGET / "debug/lib_polyflake.so", package / "_polyflake.abi3.so")
    addon = shutil.copy(TARGET / "debug/libpolyflake_node.so", tmp_path / "addon.node")

    # A store that was left out is rejected at once, even with a long wait. The store that is
    # included gets a short one, since waiting for it would not help.
    addresses = [
        part
        for store, address in ADDRESSES.items()
        for part in ("1" if store == built else "60000", address)
    ]
    said = {
        "C": output(sys.executable, "-c", C, TARGET / "debug/libpolyflake.so", *addresses),
        "Node": output("node", "-e", NODE, addon, *addresses),
        "Python": output(sys.executable, "-c", PYTHON, *addresses, PYTHONPATH=str(tmp_path)),
    }
    for language, lines in said.items():
        for store, line in zip(ADDRESSES, lines.splitlines(), strict=True):
            if built == "none":
                assert "this build has no stores, and so no counters: build it with" in line, (
                    language
                )
            else:
                left_out = f"build it with `{store}` in POLYFLAKE_STORES"
                assert (left_out in line) == (store != built), f"{language}: {line}"


def test_tools_stores() -> None:
    assert output("tools/stores", "--all").split() == list(ADDRESSES)
    known = subprocess.run(
        ["tools/stores"],
        cwd=ROOT,
        env=os.environ | {"POLYFLAKE_STORES": "redis mongo"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert known.returncode == 1
    assert known.stderr == (
        "POLYFLAKE_STORES: there is no store mongo; there are "
        "etcd mysql postgres redis sqlite zookeeper, or none\n"
    )
    for given in ("redis sqlite", "redis,sqlite"):
        said = output("tools/stores", POLYFLAKE_STORES=given)
        assert said == "--no-default-features --features redis,sqlite\n"
    for given in ("", "none"):
        assert output("tools/stores", POLYFLAKE_STORES=given) == "--no-default-features\n"
