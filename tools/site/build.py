"""Builds the site: the guide as a book, with the inspector and the API pages beside it.

    tools/site/build.py SITE MDBOOK        as `make docs` calls it, once all of its parts are built

The book is made from a copy of docs/ and the pages that are generated from the code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import reference

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tools/site"
TARGET = ROOT / "target"
INSPECTOR = ROOT / "inspector"

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
| Go | [`polyflake`](go.md) |
| Java | [`io.polyflake`](java/index.html) |
| PHP | [`Polyflake`](php.md) |
"""

CONTENTS = """
# API reference

- [All languages](api/README.md)
- [C: polyflake.h](api/c.md)
- [Go: package polyflake](api/go.md)
- [PHP: namespace Polyflake](api/php.md)
"""

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


# The header -------------------------------------------------------------------------------------


def header(up: str, current: str = "") -> str:
    """Returns the site's header for a page whose path to the root is `up`."""
    text = (HERE / "header.html").read_text(encoding="utf-8").replace("{{ path_to_root }}", up)
    return text.replace(f">{current}</a>", f' aria-current="page">{current}</a>')


def scaled(css: str) -> str:
    """A rem is 16 px in the inspector and 10 px in mdBook; in a media query, 16 px in both."""
    size = re.compile(r"^(?!@media).*", re.MULTILINE)
    rem = re.compile(r"([\d.]+)rem\b")
    return size.sub(lambda line: rem.sub(lambda n: f"{float(n[1]) * 1.6:g}rem", line[0]), css)


def palette(css: str) -> str:
    """Returns the inspector's colours for mdBook, where a class selects the dark ones."""
    found = re.findall(r":root \{\n(.*?)\n *\}", css, re.DOTALL)
    light, dark = (re.sub(r"^ *color-scheme:.*\n", "", colours, flags=re.M) for colours in found)
    parts = [f":root {{\n{light}\n}}", f".navy, .coal, .ayu {{\n{dark}\n}}"]
    no_scripts = f"html:not(.js) {{\n{dark}\n}}"
    parts.append(f"@media (prefers-color-scheme: dark) {{\n{no_scripts}\n}}")
    return "\n".join(parts) + "\n"


def look(theme: Path) -> None:
    """Writes the styles that the book shares with the inspector."""
    theme.joinpath("header.hbs").write_text(header("{{ path_to_root }}"), encoding="utf-8")
    colours = INSPECTOR.joinpath("palette.css").read_text(encoding="utf-8")
    theme.joinpath("palette.css").write_text(palette(colours), encoding="utf-8")
    for css in (INSPECTOR / "bits.css", HERE / "header.css"):
        text = scaled(css.read_text(encoding="utf-8"))
        theme.joinpath(css.name).write_text(text, encoding="utf-8")


# The parts --------------------------------------------------------------------------------------


def book(site: Path, mdbook: str) -> None:
    source = TARGET / "book"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "docs", source)
    (source / "api").mkdir()
    (source / "api/README.md").write_text(API, encoding="utf-8")
    for make in (reference.c_page, reference.go_page, reference.php_page):
        name = make.__name__.removesuffix("_page")
        (source / f"api/{name}.md").write_text(make(), encoding="utf-8")
    look(source / "theme")
    with (source / "SUMMARY.md").open("a", encoding="utf-8") as summary:
        summary.write(CONTENTS)
    # mdBook turns a README.md into index.html, but leaves links to it unchanged.
    for page in source.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"(\]\((?:[\w./-]*/)?)README\.md(?=[)#])", r"\1index.md", text)
        page.write_text(text, encoding="utf-8")
    for page in [*source.rglob("README.md")]:
        page.rename(page.with_name("index.md"))
    run(mdbook, "build", "--dest-dir", site, source)
    # mdBook copies everything but Markdown; it also copies styles and scripts under other names.
    (site / "book.toml").unlink()
    for file in (source / "theme").iterdir():
        if file.name != "live-id.js":
            (site / "theme" / file.name).unlink()


def inspector(folder: Path) -> None:
    """Puts the page below the site's header, which replaces the page's own name."""
    shutil.copytree(TARGET / "inspector/site", folder)
    shutil.copy(HERE / "header.css", folder)
    page = folder / "index.html"
    text = page.read_text(encoding="utf-8")
    link = '<link rel="stylesheet" href="header.css">\n'
    text = text.replace("<script type", f"{link}<script type", 1)
    text, count = re.subn(r'<p class="brand">.*?</p>\s*', "", text, flags=re.DOTALL)
    if count != 1:
        raise ValueError("the inspector does not say its name once")
    # A page has only one header.
    own = re.sub(r"<(/?)header\b", r"<\1div", header("../", "Inspector"))
    bar = f'<div class="site-bar"><div class="inside">{own}</div></div>\n'
    text = text.replace('<header class="top">', f'<header class="top">\n{bar}', 1)
    page.write_text(text, encoding="utf-8")
    # The page works offline, and so must its styles.
    offline = folder / "offline.js"
    text = offline.read_text(encoding="utf-8")
    text = text.replace('"./bits.css",', '"./bits.css",\n  "./header.css",', 1)
    offline.write_text(text, encoding="utf-8")


def rust(folder: Path) -> None:
    pages = TARGET / "doc"
    # Pages of crates that are no longer documented may be left over.
    shutil.rmtree(pages, ignore_errors=True)
    packages = ["-p", "polyflake", "-p", "polyflake-coordination"]
    command = ["cargo", "doc", "-q", "--locked", "--no-deps", "--all-features", *packages]
    run(*command, CARGO_TARGET_DIR=str(TARGET))
    shutil.copytree(pages, folder)
    # rustdoc's help page links to this page.
    redirect = '<!doctype html><meta http-equiv="refresh" content="0; url=polyflake/index.html">'
    (folder / "index.html").write_text(f"{redirect}<title>polyflake</title>\n", encoding="utf-8")


def python(folder: Path) -> None:
    """Uses the stub's types, which pdoc reads from a stub package that it can run."""
    import polyflake

    stub = Path(polyflake.__file__).with_name("_polyflake.pyi").read_text(encoding="utf-8")
    stubs = TARGET / "site-stubs"
    (stubs / "polyflake-stubs").mkdir(parents=True, exist_ok=True)
    runs = re.sub(r"^(?:@|    )type_check_only,?\n", "", stub, flags=re.MULTILINE)
    # pdoc uses __init__ to show how to construct an object.
    runs = re.sub(
        r"def __new__\(\s+cls,(.*?)\) -> \w+:", r"def __init__(self,\1):", runs, flags=re.DOTALL
    )
    # Python 3.11 does not support array[int].
    runs = f"from __future__ import annotations\n{runs}".replace("array[int]", "array")
    (stubs / "polyflake-stubs/__init__.pyi").write_text(runs, encoding="utf-8")
    command = [sys.executable, "-W", "error", "-m", "pdoc", "--docformat", "google"]
    command += ["--no-show-source", "--template-directory", str(HERE / "pdoc")]
    icon = next(folder.parents[1].glob("favicon-*.svg"))
    command += ["--favicon", f"../../{icon.name}", "--output-directory", str(folder)]
    run(*command, "polyflake", PYTHONPATH=str(stubs))


def java(folder: Path) -> None:
    """Runs the same checks as the package's tests."""
    package = ROOT / "bindings-c/java"
    home = subprocess.run([package / "jdk"], stdout=subprocess.PIPE, text=True, check=False).stdout
    if not home:
        raise SystemExit("the site needs a JDK of Java 22 or later, for Javadoc")
    command = [f"{home.strip()}/bin/javadoc", "-quiet", "-Xdoclint:all", "-Werror", "-notimestamp"]
    command += ["-windowtitle", "Polyflake for Java"]
    command += ["--add-stylesheet", str(HERE / "javadoc.css"), "--release", "22"]
    command += ["-d", str(folder), "--module", "io.polyflake"]
    run(*command, "--module-source-path", f"io.polyflake={package / 'src/main/java'}")
    # Javadoc has no option for an icon, and a browser would look for one at the host's root.
    icon = next(folder.parents[1].glob("favicon-*.svg"))
    for page in folder.rglob("*.html"):
        link = f'<link rel="icon" href="{os.path.relpath(icon, page.parent)}">'
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("</head>", f"{link}\n</head>", 1), encoding="utf-8")


def node(folder: Path) -> None:
    run("node_modules/.bin/typedoc", "--logLevel", "Warn", "--out", folder, cwd=HERE)


def link_back(site: Path, folder: Path) -> None:
    """Adds a link to the guide to other tools' pages, and repairs links to tracing's pages."""
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
    inspector(site / "inspector")
    for make in (rust, python, node, java):
        make(site / "api" / make.__name__)
        link_back(site, site / "api" / make.__name__)
    print(site)


if __name__ == "__main__":
    main()
