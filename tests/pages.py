"""The project's Markdown, parsed: its code, tables, headings and links."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin

ROOT = Path(__file__).resolve().parents[1]
# The features that GitHub and mdBook have in common.
PARSER = MarkdownIt("commonmark").enable("table").use(anchors_plugin, max_level=6)


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    page: Page
    line: int
    """The line of the opening fence, counted from 1."""
    info: str
    text: str

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Table:
    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Page:
    path: Path

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tokens(self) -> list[Token]:
        return PARSER.parse(self.text)

    @cached_property
    def inline(self) -> list[Token]:
        """The contents of paragraphs, headings and cells: text, code, links."""
        return [child for token in self.tokens for child in token.children or []]

    @cached_property
    def blocks(self) -> list[Block]:
        fences = [token for token in self.tokens if token.type == "fence"]
        return [
            Block(self, token.map[0] + 1, token.info.strip(), token.content)
            for token in fences
            if token.map
        ]

    @cached_property
    def has_indented_code(self) -> bool:
        return any(token.type == "code_block" for token in self.tokens)

    @cached_property
    def anchors(self) -> set[str]:
        headings = (token for token in self.tokens if token.type == "heading_open")
        return {str(token.attrs["id"]) for token in headings}

    @cached_property
    def links(self) -> list[str]:
        """The targets of links and images, as written."""
        hrefs = [child.attrGet("href") or child.attrGet("src") for child in self.inline]
        return [str(href) for href in hrefs if href is not None]

    @cached_property
    def code(self) -> list[str]:
        """The inline code in the text: `...`."""
        return [child.content for child in self.inline if child.type == "code_inline"]

    @cached_property
    def tables(self) -> list[Table]:
        return list(self._tables())

    def _tables(self) -> Iterator[Table]:
        lines: list[list[str]] = []
        for before, token in zip(self.tokens, self.tokens[1:], strict=False):
            if token.type == "table_close":
                yield Table(lines[0], lines[1:])
                lines = []
            elif token.type == "tr_open":
                lines.append([])
            elif token.type == "inline" and before.type in ("th_open", "td_open"):
                lines[-1].append(token.content)

    def table(self, *head: str) -> Table:
        """Returns the only table whose first columns have these headings."""
        found = [table for table in self.tables if tuple(table.head[: len(head)]) == head]
        assert len(found) == 1, f"{self}: {len(found)} tables begin with {head}"
        return found[0]


@cache
def page(path: str | Path) -> Page:
    """The page at a path relative to the root, or at an absolute path. Parsed once."""
    return Page((ROOT / path).resolve())


def every_page() -> list[Page]:
    """All Markdown files that git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    paths = (ROOT / name for name in listed.stdout.splitlines())
    return [page(path) for path in sorted(paths) if path.exists()]


README = page("README.md")
GUIDE = sorted(
    (found for found in every_page() if found.path.is_relative_to(ROOT / "docs")), key=str
)
