"""Writes docs/recipes.md, the guide's page on recipes, from the table in recipes/README.md.

tests/make_recipes.py [--check]        --check only checks that the page is up to date
"""

from __future__ import annotations

import re
import sys

from pages import ROOT, page

PAGE = ROOT / "docs/recipes.md"
HEAD = """\
# Recipes

<!-- tests/make_recipes.py makes this page from recipes/README.md. -->

A short file for each framework, to copy into your program. Those that issue IDs take an
`IdGenerator`: a Snowflake with its own node, one with a [lease](leases.md), a
[Counter](counters.md), or your own generator. In JSON an ID is a string, since
[JavaScript rounds numbers of this size](json-and-javascript.md).

The files are in the repository's folder `recipes`. Tests there run them in their frameworks and
on real databases.
"""
LANGUAGES = {
    ".py": "python",
    ".sql": "sql",
    ".ts": "ts",
    ".go": "go",
    ".java": "java",
    ".rs": "rust",
    ".php": "php",
}


def recipes_text() -> str:
    readme = page("recipes/README.md")
    text, last = HEAD, ""
    for framework, file, gives in readme.table("for", "file", "what it gives").rows:
        link = re.fullmatch(r"\[.*\]\((.*)\)", file)
        assert link, f"{file} is no link"
        path = readme.path.parent / link[1]
        if framework != last:
            text += f"\n## {framework}\n"
        last = framework
        code = path.read_text(encoding="utf-8").rstrip("\n")
        text += f"\n`{path.relative_to(ROOT)}`: {gives}.\n\n"
        text += f"```{LANGUAGES[path.suffix]} not-run\n{code}\n```\n"
    return text


def main(arguments: list[str]) -> int:
    name = PAGE.relative_to(ROOT)
    if arguments == ["--check"]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != recipes_text():
            print(f"{name} is not what make_recipes.py makes: run make recipes-page")
            return 1
        print(f"{name} is what make_recipes.py makes")
        return 0
    if arguments:
        print(__doc__)
        return 2
    PAGE.write_text(recipes_text(), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
