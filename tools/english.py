"""Finds English that no native speaker would write, in this repository's Markdown and comments.

tools/english.py [FILE ...]        all files, unless some are named
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# What to look for, and what to write.
HABITS = {
    r"\bwhoever\b": "name them: the caller, the process, anyone who",
    r"\bthat which\b": "name the thing",
    r"\bof (its|their) own\b(?! (?!(and|as|for|from|in|that|to|too|which)\b)\w)": "its own X",
    r"\bso many\b(?! (that|as)| [^.;:]* that\b)": "how many? or: this many, as many as",
    r"\bso long\b(?! (that|as))": "how long? or: this long",
    r"\bas yet\b": "yet",
    r"\ball else\b": "anything else, everything else",
    r"\bby turns\b": "in turn",
    r"\bfor ever\b": "forever",
    r"[;:,] else (?=\w)": "otherwise",
    r"\bis (one|none) of (its|theirs|ours)\b": "use a verb: owns, belongs to",
    r"\b(is|are) to (be|have) (?!able)": "must be, will be, should have",
    r"\bbegins? afresh\b": "starts over, starts again",
    r"\bonce more\b(?! than)": "again",
    r"[.;:] what (?!(is|are|if|about)\b)\w+ (is|has|can|may|needs?|takes?)\b": "name the thing",
    r"(?<!there\s)\bare no (numbers|integers|IDs|texts)\b": "are not",
    r"(?<!there\s)\bis no (number|integer|ID|text|file|one)\b": "is not a",
    r"\ban? \w+ that is none\b": "say what it is instead",
}
NOT_PROSE = re.compile(
    r"^(```|~~~).*?^\1|`[^`\n]*`|<!--.*?-->|\]\([^)\n]*\)", re.DOTALL | re.MULTILINE
)
# Strings come first, so that nothing in them counts as a comment.
C_LIKE = re.compile(r'"(?:\\[\s\S]|[^"\\\n])*"|(?P<prose>[ \t]*(?<!:)//.*|[ \t]*/\*(?:.|\n)*?\*/)')
PYTHON = re.compile(
    r'''(?P<prose>[ \t]*"""(?:.|\n)*?"""|[ \t]*#.*)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''''
)
COMMENTS = dict.fromkeys(
    (".c", ".go", ".h", ".java", ".js", ".mjs", ".php", ".rs", ".ts"), C_LIKE
) | {".py": PYTHON, ".sql": re.compile(r"'[^'\n]*'|(?P<prose>[ \t]*--.*)")}
MARK = re.compile(r"^[ \t]*(?:///?|//!|/\*+|\*/?|#|--)(?=\s|$)", re.MULTILINE)
# These are generated from other files.
MADE = ("docs/recipes.md", "docs/benchmarks/", "bindings-c/include/", "bindings-c/php/resources/")


def blank(text: str) -> str:
    """Keeps only the line breaks, so that lines keep their numbers."""
    return text if text.isspace() else "\0" + "\n" * text.count("\n") + "\0"


def prose_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if comments := COMMENTS.get(path.suffix):
        prose, end = "", 0
        for match in comments.finditer(text):
            if comment := match["prose"]:
                comment = MARK.sub(lambda mark: " " * len(mark[0]), comment)
                prose += blank(text[end : match.start()]) + comment
                end = match.end()
        text = prose + blank(text[end:])
    return NOT_PROSE.sub(lambda match: blank(match[0]), text)


def main(files: list[str]) -> int:
    if not files:
        listed = subprocess.run(
            ["git", "ls-files", "*.md", *(f"*{suffix}" for suffix in COMMENTS)],
            check=True,
            capture_output=True,
            text=True,
        )
        files = [file for file in listed.stdout.split() if not file.startswith(MADE)]
    found = 0
    for file in files:
        prose = prose_of(Path(file))
        for habit, advice in HABITS.items():
            spaced = habit.replace(" ", r"\s+")
            for match in re.finditer(spaced, prose, re.IGNORECASE):
                line = prose.count("\n", 0, match.start()) + 1
                print(f"{file}:{line}: {' '.join(match[0].split())!r}: {advice}")
                found += 1
    print(f"{len(files)} files, {found} found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
