"""Builds the site: the guide as a book, with the inspector and the API pages beside it.

    tools/site/build.py SITE MDBOOK        as `make docs` calls it, when all of its parts are built

The book is made of a copy of docs/, to which the pages are added that are made of the code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tools/site"
TARGET = ROOT / "target"
HEADER = ROOT / "bindings-c/include/polyflake.h"

API = """\
# API reference

These pages are generated from the code.

| language | pages |
|---|---|
| Rust | [`polyflake`](rust/polyflake/index.html) |
| Rust, leases and counters | [`polyflake_coordination`](rust/polyflake_coordination/index.html) |
| Python | [`polyflake`](python/polyflake.html) |
| TypeScript and JavaScript | [`polyflake`](node/index.html) |
| C and C++ | [`polyflake.h`](c.md) |

Go has its own: `go doc -all github.com/polyflake/polyflake/bindings-c/go`. The classes of PHP are
documented in their source, `bindings-c/php/src`.
"""

CONTENTS = """
# API reference

- [All languages](api/README.md)
- [C: polyflake.h](api/c.md)
"""

ITEM = re.compile(r"^/\*\*\n(.*?)^ \*/\n(.*?)(?=^\n|\Z)", re.DOTALL | re.MULTILINE)
KINDS = {
    "Functions": r"^(?!typedef|#define).*?\b(\w+)\(",
    "Types": r"^typedef.*?(?:\(\*)?\b(\w+)\)?(?:\([^()]*\))?;$",
    "Constants": r"^#define (\w+)",
}
TRACING = "https://docs.rs/tracing/latest/tracing/dispatcher/index.html"
BACK = """\
<style>
#to-the-guide {{ position: fixed; right: 12px; bottom: 12px; z-index: 1000; padding: 6px 12px;
  border-radius: 16px; background: #1d5fbf; color: #fff; font: 14px/1.4 sans-serif;
  text-decoration: none; }}
@media print {{ #to-the-guide {{ display: none; }} }}
</style>
<a id="to-the-guide" href="{}">Polyflake guide</a>
"""


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> None:
    subprocess.run(command, cwd=cwd, check=True, env={**os.environ, **environment})


@dataclass(frozen=True)
class Item:
    """What the header declares and documents."""

    kind: str
    name: str
    comment: str
    code: str


def items(header: str) -> list[Item]:
    found = []
    for comment, code in ITEM.findall(header):
        for kind, pattern in KINDS.items():
            if match := re.search(pattern, code.strip(), re.DOTALL):
                found.append(Item(kind, match[1], uncommented(comment), code.strip()))
                break
        else:
            raise ValueError(f"neither function, type nor constant: {code}")
    return found


def markdown(comment: str) -> str:
    """Text with names in code; what has columns or is indented stays as it is."""
    parts = []
    for part in re.split(r"\n{2,}", comment.strip("\n")):
        if re.search(r"^  |\S   ", part, re.MULTILINE):
            language = "c" if ";" in part else "text"
            parts.append(f"```{language}\n{textwrap.dedent(part)}\n```")
        else:
            part = re.sub(r"([\\`*<>\[\]])", r"\\\1", part)
            parts.append(re.sub(r"\b(polyflake_\w+|POLYFLAKE_\w+)\b", r"`\1`", part))
    return "\n\n".join(parts)


def uncommented(lines: str) -> str:
    return re.sub(r"^ \*(?: |$)", "", lines, flags=re.MULTILINE)


def c_page() -> str:
    header = HEADER.read_text(encoding="utf-8")
    about = re.match(r"/\* (.*?) \*/", header, re.DOTALL)
    if about is None:
        raise ValueError("the header has no comment at its top")
    parts = ["# polyflake.h", markdown(uncommented(about[1]))]
    found = items(header)
    for kind in KINDS:
        parts.append(f"## {kind}")
        for item in found:
            if item.kind == kind:
                parts += [f"### {item.name}", markdown(item.comment), f"```c\n{item.code}\n```"]
    return "\n\n".join(parts) + "\n"


def book(site: Path, mdbook: str) -> None:
    source = TARGET / "book"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "docs", source)
    (source / "api").mkdir()
    (source / "api/README.md").write_text(API, encoding="utf-8")
    (source / "api/c.md").write_text(c_page(), encoding="utf-8")
    with (source / "SUMMARY.md").open("a", encoding="utf-8") as summary:
        summary.write(CONTENTS)
    # mdBook makes index.html of a README.md, but leaves the links to it as they are.
    for page in source.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"(\]\((?:[\w./-]*/)?)README\.md(?=[)#])", r"\1index.md", text)
        page.write_text(text, encoding="utf-8")
    for page in [*source.rglob("README.md")]:
        page.rename(page.with_name("index.md"))
    run(mdbook, "build", "--dest-dir", site, source)
    # mdBook copies whatever is not Markdown; the style sheet it also copies under another name.
    for name in ("book.toml", "theme/header.hbs", "theme/favicon.svg", "theme/site.css"):
        (site / name).unlink()


def rust(folder: Path) -> None:
    pages = TARGET / "doc"
    # Pages of crates that are not asked for now.
    shutil.rmtree(pages, ignore_errors=True)
    packages = ["-p", "polyflake", "-p", "polyflake-coordination"]
    command = ["cargo", "doc", "-q", "--locked", "--no-deps", "--all-features", *packages]
    run(*command, CARGO_TARGET_DIR=str(TARGET))
    shutil.copytree(pages, folder)
    # Its help page leads there.
    redirect = '<!doctype html><meta http-equiv="refresh" content="0; url=polyflake/index.html">'
    (folder / "index.html").write_text(f"{redirect}<title>polyflake</title>\n", encoding="utf-8")


def python(folder: Path) -> None:
    """With the stub's types, which pdoc takes from a package of stubs that it can run."""
    import polyflake

    stub = Path(polyflake.__file__).with_name("_polyflake.pyi").read_text(encoding="utf-8")
    stubs = TARGET / "site-stubs"
    (stubs / "polyflake-stubs").mkdir(parents=True, exist_ok=True)
    runs = re.sub(r"^(?:@|    )type_check_only,?\n", "", stub, flags=re.MULTILINE)
    # pdoc shows how to construct an object by __init__.
    runs = re.sub(
        r"def __new__\(\s+cls,(.*?)\) -> \w+:", r"def __init__(self,\1):", runs, flags=re.DOTALL
    )
    # Python 3.11 cannot do array[int].
    runs = f"from __future__ import annotations\n{runs}".replace("array[int]", "array")
    (stubs / "polyflake-stubs/__init__.pyi").write_text(runs, encoding="utf-8")
    command = [sys.executable, "-W", "error", "-m", "pdoc", "--docformat", "google"]
    command += ["--no-show-source", "--template-directory", str(HERE / "pdoc")]
    icon = next(folder.parents[1].glob("favicon-*.svg"))
    command += ["--favicon", f"../../{icon.name}", "--output-directory", str(folder)]
    run(*command, "polyflake", PYTHONPATH=str(stubs))


def node(folder: Path) -> None:
    run("node_modules/.bin/typedoc", "--logLevel", "Warn", "--out", folder, cwd=HERE)


def link_back(site: Path, folder: Path) -> None:
    """From each page of other tools to the guide. Mends links of tracing's documentation."""
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        text = re.sub(r'(?<=href=")(?:\.\./)*dispatcher(?=#)', TRACING, text)
        head, end, tail = text.rpartition("</body>")
        up = os.path.relpath(site / "index.html", page.parent)
        page.write_text(f"{head}{BACK.format(up)}{end}{tail}", encoding="utf-8")


def main() -> None:
    site = Path(sys.argv[1]).resolve()
    shutil.rmtree(site, ignore_errors=True)
    book(site, sys.argv[2])
    shutil.copytree(TARGET / "inspector/site", site / "inspector")
    inspector = site / "inspector/index.html"
    text = inspector.read_text(encoding="utf-8")
    text = text.replace("<span>Polyflake ", '<span><a href="../index.html">Polyflake</a> ', 1)
    inspector.write_text(text, encoding="utf-8")
    for make in (rust, python, node):
        make(site / "api" / make.__name__)
        link_back(site, site / "api" / make.__name__)
    print(site)


if __name__ == "__main__":
    main()
