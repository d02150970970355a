"""Finds habits of English that no native has, in the Markdown of this repository.

tools/english.py [FILE ...]        all of it, unless files are named
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
    r"\bof (its|their) own\b": "its own X, or nothing",
    r"\bso many\b(?! (that|as))": "how many? or: this many, as many as",
    r"\bso long\b(?! as)": "how long? or: this long",
    r"\bas yet\b": "yet",
    r"\ball else\b": "anything else, everything else",
    r"\bby turns\b": "in turn",
    r"\bfor ever\b": "forever",
    r"[;:,] else (?=\w)": "otherwise",
    r"\bis (one|none) of (its|theirs|ours)\b": "use a verb: owns, belongs to",
    r"\b(is|are) to (be|have) (?!able)": "must be, will be, should have",
    r"\bbegins? afresh\b": "starts over, starts again",
    r"\bonce more\b": "again",
    r"[.;:] what (?!(is|are|if|about)\b)\w+ (is|has|can|may|needs?|takes?)\b": "name the thing",
    r"\bare no (numbers|integers|IDs|texts)\b": "are not",
    r"\bis no (number|integer|ID|text|file|one)\b": "is not a",
    r"\ban? \w+ that is none\b": "say what it is instead",
}
NOT_PROSE = re.compile(
    r"^(```|~~~).*?^\1|`[^`\n]*`|<!--.*?-->|\]\([^)\n]*\)", re.DOTALL | re.MULTILINE
)
MADE = ("docs/recipes.md", "docs/benchmarks/")


def main(files: list[str]) -> int:
    if not files:
        listed = subprocess.run(
            ["git", "ls-files", "*.md"], check=True, capture_output=True, text=True
        )
        files = [file for file in listed.stdout.split() if not file.startswith(MADE)]
    found = 0
    for file in files:
        text = Path(file).read_text(encoding="utf-8")
        # As long as before, so that lines keep their numbers.
        prose = NOT_PROSE.sub(lambda match: re.sub(r"[^\n]", "`", match[0]), text)
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
