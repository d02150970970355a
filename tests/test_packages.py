"""The archives for Go and PHP that packages/build.py makes, with empty files as libraries."""

import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "packages"))
import build  # noqa: E402


@pytest.fixture(autouse=True)
def libraries(tmp_path, monkeypatch):
    """One empty library for each platform."""
    monkeypatch.setattr(build, "DIST", tmp_path / "dist")
    monkeypatch.setattr(build, "STAGE", tmp_path / "stage")
    build.DIST.mkdir()
    for name in build.PLATFORMS:
        folder = build.STAGE / "c" / name / "lib/pkgconfig"
        folder.mkdir(parents=True)
        (folder / "polyflake.pc").write_text("Libs.private: -lpthread\n")
        (folder.parent / "libpolyflake.a").touch()
        shared = build.shared_library(name)
        shared.parent.mkdir(exist_ok=True)
        shared.touch()


def install_section(readme: str) -> str:
    return readme.split("\n## Install\n\n")[1].split("\n## ")[0]


def test_the_go_module():
    build.go_module()
    (archive,) = build.DIST.rglob("*.zip")
    with zipfile.ZipFile(archive) as opened:
        files = {
            name.split(f"@v{build.VERSION}/")[1]: opened.read(name) for name in opened.namelist()
        }
    assert {f"libpolyflake_{name}.a" for name in build.PLATFORMS} <= files.keys()
    assert {"LICENSE", "polyflake.h", "go.mod", "snowflake.go"} <= files.keys()
    link = files["link.go"].decode()
    assert link.startswith("//go:build polyflake_pkgconfig || !((")
    assert link.count("#cgo") == 1
    assert "// #cgo pkg-config: polyflake\nimport" in link
    install = install_section(files["README.md"].decode())
    assert "go get github.com/polyflake/polyflake/bindings-c/go" in install
    assert "make go" not in install


def test_the_composer_archive():
    build.composer_archive()
    (archive,) = build.DIST.glob("*.zip")
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
        install = install_section(opened.read("README.md").decode())
    assert {name.split("/")[1] for name in names if name.startswith("lib/")} == set(build.PLATFORMS)
    assert "composer require polyflake/polyflake" in install
    assert "make install" not in install
