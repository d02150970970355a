"""Writes the API pages for C, Go and PHP as Markdown, since no tool here generates them."""

from __future__ import annotations

import re
import shutil
import subprocess
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "bindings-c/include/polyflake.h"
GO = ROOT / "bindings-c/go"
PHP = ROOT / "bindings-c/php/src"

# Names to mark as code: in C comments, all of them; in Go and PHP comments, those that are not
# ordinary words.
C_NAME = re.compile(r"\b(polyflake_\w+|POLYFLAKE_\w+)\b")


def is_columns(part: str) -> bool:
    return bool(re.search(r"^  |\S   ", part, re.MULTILINE))


def markdown(
    comment: str, language: str, names: re.Pattern[str], is_code: Callable[[str], bool] = is_columns
) -> str:
    """Marks names in a comment as code. Columns and indented parts stay unchanged."""
    parts = []
    for part in re.split(r"\n{2,}", comment.strip("\n")):
        if is_code(part):
            fence = "text" if language == "c" and ";" not in part else language
            parts.append(f"```{fence}\n{textwrap.dedent(part)}\n```")
        else:
            part = re.sub(r"([\\`*<>\[\]])", r"\\\1", part)
            parts.append(names.sub(r"`\1`", part))
    return "\n\n".join(parts)


# C -----------------------------------------------------------------------------------------------

ITEM = re.compile(r"^/\*\*\n(.*?)^ \*/\n(.*?)(?=^\n|\Z)", re.DOTALL | re.MULTILINE)
KINDS = {
    "Functions": r"^(?!typedef|#define).*?\b(\w+)\(",
    "Types": r"^typedef.*?(?:\(\*)?\b(\w+)\)?(?:\([^()]*\))?;$",
    "Constants": r"^#define (\w+)",
}


@dataclass(frozen=True)
class Item:
    """An item that the header declares and documents."""

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


def uncommented(lines: str) -> str:
    return re.sub(r"^ *\*(?: |$)", "", lines, flags=re.MULTILINE)


def c_page() -> str:
    header = HEADER.read_text(encoding="utf-8")
    about = re.match(r"/\* (.*?) \*/", header, re.DOTALL)
    if about is None:
        raise ValueError("the header has no comment at its top")
    parts = ["# polyflake.h", markdown(uncommented(about[1]), "c", C_NAME)]
    found = items(header)
    for kind in KINDS:
        parts.append(f"## {kind}")
        for item in found:
            if item.kind == kind:
                text = markdown(item.comment, "c", C_NAME)
                parts += [f"### {item.name}", text, f"```c\n{item.code}\n```"]
    return "\n\n".join(parts) + "\n"


# Go ----------------------------------------------------------------------------------------------

GO_TITLE = "# Go: package polyflake"
WITHOUT_GO = f"""{GO_TITLE}

This site was built without Go. In a checkout, `go doc -all` in `bindings-c/go` prints this page.
"""
# A declaration ends on its line, or with the bracket opened there. Its comment is indented.
DECLARED = re.compile(
    r"^(?P<code>(?:const|var|func|type) [^\n]*(?:(?<=[({])\n(?:[^)}\n][^\n]*\n|\n)*[)}][^\n]*)?)\n"
    r"(?P<text>(?:    [^\n]*\n|\n)*)",
    re.MULTILINE,
)
GO_NAME = re.compile(r"\b([A-Z]\w*\.[A-Z]\w*|Err[A-Z]\w*|[A-Z][a-z]+(?:ID|IDs|Context|Error))\b")


def go_name(code: str) -> str:
    """Returns the heading for a declaration. A method's name follows its type's."""
    if method := re.match(r"func \(\w+ \*?(\w+)[^)]*\) (\w+)", code):
        return f"{method[1]}.{method[2]}"
    if name := re.match(r"(?:func|type|const|var) (\w+)", code):
        return name[1]
    # For a group, the first name in it, and a note that there are more.
    first = re.search(r"^\t(\w+)", code, re.MULTILINE)
    if first is None:
        raise ValueError(f"declares nothing: {code}")
    return f"{first[1]} and others"


def go_page() -> str:
    """Returns the output of `go doc -all` as a page."""
    go = shutil.which("go")
    if go is None:
        return WITHOUT_GO
    command = [go, "doc", "-all", "."]
    printed = subprocess.run(command, cwd=GO, check=True, capture_output=True, text=True).stdout
    about, *sections = re.split(r"^(?=CONSTANTS|VARIABLES|FUNCTIONS|TYPES)", printed, flags=re.M)

    def text(doc: str) -> str:
        return markdown(textwrap.dedent(doc), "go", GO_NAME, lambda part: part.startswith("  "))

    parts = [GO_TITLE, text(about.partition("\n")[2])]
    for section in sections:
        title, _, rest = section.partition("\n")
        parts.append(f"## {title.capitalize()}")
        for item in DECLARED.finditer(rest):
            code = item["code"]
            parts += [f"### {go_name(code)}", f"```go\n{code}\n```", text(item["text"])]
    return "\n\n".join(filter(None, parts)) + "\n"


# PHP ---------------------------------------------------------------------------------------------

DOC = r"(?:^ *(?P<doc>/\*\*(?:(?!\*/).)*?\*/)\n)?"
CLASS = re.compile(
    DOC + r"^(?P<code>(?:final )?(?P<kind>class|interface) (?P<name>\w+)[^\n{]*)", re.M | re.S
)
METHOD = re.compile(
    DOC
    + r"^    (?P<code>public (?:static )?function (?P<name>\w+)"
    + r"\((?:[^()]|\([^()]*\))*\)(?:: [^\n;{]+)?)",
    re.M | re.S,
)
# This includes properties that a constructor declares.
PROPERTY = re.compile(DOC + r"^ *(?P<code>public readonly [^\n;,]*(?P<name>\$\w+))", re.M | re.S)
PHP_NAME = re.compile(r"(\$\w+|\b\w*(?:->|::)?\w+\(\)|\b[A-Z]\w+Exception\b)")
TAG = re.compile(r"^@(param|return|throws|implements|property-read) ", re.M)
# Methods that PHP itself calls.
MAGIC = {"__destruct", "__clone", "__serialize", "__unserialize", "__debugInfo"}


def doc_lines(doc: str) -> str:
    return uncommented(doc.removeprefix("/**").removesuffix("*/")).strip()


def described(doc: str) -> str:
    """Returns the text of a comment, followed by its tags as a list."""
    first = TAG.search(doc)
    text, tags = (doc[: first.start()], doc[first.start() :]) if first else (doc, "")
    parts = [markdown(text.strip(), "php", PHP_NAME, lambda part: part.startswith("    "))]
    lines = []
    for tag in re.split(r"^@", tags, flags=re.M)[1:]:
        kind, _, rest = " ".join(tag.split()).partition(" ")
        if kind in ("param", "property-read"):
            given = re.match(r"(.*?)(\$\w+) ?(.*)", rest)
            if given and given[3]:
                lines.append(f"- `{given[2]}`: {markdown(given[3], 'php', PHP_NAME)}")
        elif kind in ("return", "throws"):
            type_, _, why = rest.partition(" ")
            if why and "<" not in type_:
                word = "returns" if kind == "return" else "throws"
                lines.append(f"- {word} `{type_}` {markdown(why, 'php', PHP_NAME)}")
    return "\n\n".join(filter(None, [*parts, "\n".join(lines)]))


def php_page() -> str:
    """Returns the page that lists the public classes and their public members."""
    parts = [
        "# PHP: namespace Polyflake",
        "The classes, in the order of their names; the exceptions come last.",
    ]
    files = sorted(PHP.glob("*.php")) + sorted(PHP.glob("Exception/*.php"))
    for file in files:
        source = file.read_text(encoding="utf-8")
        found = CLASS.search(source)
        if found is None:
            continue
        prefix = "Exception\\" if file.parent != PHP else ""
        parts += [f"## {prefix}{found['name']}", described(doc_lines(found["doc"] or ""))]
        parts.append(f"```php\n{found['code'].strip()}\n```")
        for pattern, after in ((PROPERTY, ""), (METHOD, "()")):
            for member in pattern.finditer(source, found.end()):
                doc = doc_lines(member["doc"] or "")
                if "@internal" not in doc and member["name"] not in MAGIC:
                    code = re.sub(r"\n    ", "\n", member["code"].strip())
                    parts.append(f"### {found['name']}: {member['name']}{after}")
                    parts += [described(doc), f"```php\n{code}\n```"]
    return "\n\n".join(filter(None, parts)) + "\n"
