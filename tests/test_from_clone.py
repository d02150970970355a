"""From a clone to a first ID: `make LANGUAGE`, and the printed lines, in an empty project."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(command: str, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def printed(language: str) -> str:
    """The lines that follow `In your project:`."""
    return run(f"make --no-print-directory {language}", ROOT).split("In your project:\n\n")[1]


def is_id(text: str) -> bool:
    return int(text) > 1 << 60


def test_python(tmp_path: Path) -> None:
    run(f"{sys.executable} -m venv new", tmp_path)
    run(f"export PATH=$PWD/new/bin:$PATH; {printed('python')}", tmp_path)
    program = "from polyflake import Snowflake; print(Snowflake(node=7).next_id())"
    assert is_id(run(f"new/bin/python -c '{program}'", tmp_path))


def test_node(tmp_path: Path) -> None:
    run(f"npm init -y; {printed('node')}", tmp_path)
    program = 'new (require("polyflake").Snowflake)({ node: 7 }).nextIdString()'
    assert is_id(run(f"node -p '{program}'", tmp_path))


def test_c(tmp_path: Path) -> None:
    program = (ROOT / "bindings-c/examples/quickstart.c").read_text()
    (tmp_path / "program.c").write_text(program)
    run(f"{printed('c')}./program", tmp_path)


GO = """
package main

import (
	"fmt"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

func main() {
	ids, err := polyflake.New(polyflake.Node(7))
	if err != nil {
		panic(err)
	}
	id, err := ids.NextID()
	if err != nil {
		panic(err)
	}
	fmt.Println(id)
}
"""


def test_go(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text(GO)
    run(f"go mod init example.org/app; {printed('go')}", tmp_path)
    assert is_id(run("go run .", tmp_path))


def test_php(tmp_path: Path) -> None:
    require = printed("php").split("in PHP: ")[1].strip()
    (tmp_path / "program.php").write_text(
        f"<?php {require} $ids = new Polyflake\\Snowflake(node: 7); echo $ids->nextId();"
    )
    assert is_id(run("php -d ffi.enable=1 program.php", tmp_path))


JAVA = """
class Program {
    public static void main(String[] arguments) {
        System.out.println(io.polyflake.Snowflake.builder().node(7).build().nextId());
    }
}
"""


def test_java(tmp_path: Path) -> None:
    found = subprocess.run(
        ROOT / "bindings-c/java/jdk", stdout=subprocess.PIPE, text=True, check=False
    )
    if found.returncode != 0:
        pytest.skip("there is no JDK of Java 22 or later")
    (tmp_path / "Program.java").write_text(JAVA)
    command = printed("java").split("without Maven: ")[1].strip()
    # The jar contains the library.
    assert is_id(run(f"unset LD_LIBRARY_PATH; {found.stdout.strip()}/bin/{command}", tmp_path))


RUST = """
fn main() {
    let ids = polyflake::Snowflake::builder().node(7_u64).build().unwrap();
    println!("{}", ids.next_id().unwrap());
}
"""


@pytest.mark.parametrize("lines", [1, 2])
def test_rust(tmp_path: Path, lines: int) -> None:
    run("cargo init -q --name app", tmp_path)
    run("\n".join(printed("rust").splitlines()[:lines]), tmp_path)
    (tmp_path / "src/main.rs").write_text(RUST)
    assert is_id(run("cargo run -q", tmp_path))
