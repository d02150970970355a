"""Checks that a crate's files do not import each other in a circle.

    tools/imports.py [--list] [SRC]        SRC is core/src unless given; --list prints every import

A file imports another when it names one of its items: in `use` or in a path, through `crate::`,
`self::` or `super::`, followed through re-exports to the file that defines the item, and to the
stand-in that replaces that file in other builds (`#[path]`). Not counted: `mod`, `pub use` of a
module's own submodules, tests, and a submodule that uses items of its parents.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

Module = tuple[str, ...]

COMMENT_OR_TEXT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|r(\#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])'""", re.DOTALL
)
TESTS = re.compile(
    r"#\[cfg\((?:all\()?(?:test|loom)\b[^\n]*\n(?:\s*#\[[^\n]*\n)*\s*mod (\w+)\s*([{;])"
)
USE = re.compile(r"^\s*(pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
STAND_IN = re.compile(r'#\[path = "([\w/]+)\.rs"\]\s*(?:pub(?:\([^)]*\))? )?mod (\w+);')
PATH = re.compile(r"(?<![:\w])\w+(?:::\w+)+")


def code(text: str) -> str:
    """Returns the file without comments, strings and test modules."""
    text = COMMENT_OR_TEXT.sub(" ", text)
    while match := TESTS.search(text):
        end, depth = match.end(), int(match[2] == "{")
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: match.start()] + text[end:]
    return text


def leaves(tree: str) -> Iterator[tuple[str, str]]:
    """Yields each path of a `use` tree, and the name it is bound to."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if brace:
        depth, part = 0, ""
        for character in rest[: rest.rindex("}")] + ",":
            depth += {"{": 1, "}": -1}.get(character, 0)
            if character == "," and depth == 0:
                if part.strip():
                    for path, name in leaves(part):
                        path = path.removesuffix("self").removesuffix("::")
                        yield "::".join(filter(None, [head.strip().removesuffix("::"), path])), name
                part = ""
            else:
                part += character
    else:
        path, _, name = tree.partition(" as ")
        yield path.strip(), name.strip() or path.split("::")[-1].strip()


def module_of(file: Path) -> Module:
    module = file.with_suffix("").parts
    return module[:-1] if module[-1] in ("mod", "lib", "main") else module


class Crate:
    def __init__(self, src: Path) -> None:
        self.code: dict[Module, str] = {}
        self.stand_ins: dict[Module, Module] = {}
        tests: set[Module] = set()
        # Next to a library, main.rs is a separate crate.
        beside = src / "main.rs" if (src / "lib.rs").exists() else None
        for file in sorted(set(src.rglob("*.rs")) - {beside}):
            module = module_of(file.relative_to(src))
            text = file.read_text(encoding="utf-8")
            self.code[module] = code(text)
            for path, name in STAND_IN.findall(text):
                folder = file.relative_to(src).parent.parts
                self.stand_ins[*module, name] = (*folder, *module_of(Path(path)))
            tests |= {(*module, name) for name, sign in TESTS.findall(text) if sign == ";"}
        for module in tests:
            self.code.pop(module, None)
        self.exported: dict[Module, dict[str, str]] = {
            module: {
                name: path
                for visibility, tree in USE.findall(text)
                if visibility
                for path, name in leaves(tree)
            }
            for module, text in self.code.items()
        }

    def file(self, module: Module, path: str, depth: int = 0) -> Module:
        """Returns the file that defines whatever `path` names in `module`."""
        at: Module = module
        names = path.split("::")
        while names and names[0] in ("crate", "self", "super"):
            first = names.pop(0)
            at = () if first == "crate" else at[:-1] if first == "super" else at
        while names and (*at, names[0]) in self.code:
            at = (*at, names.pop(0))
        exported = self.exported[at]
        if names and names[0] in exported and depth < 9:
            further = exported[names[0]]
            if not further.startswith(("crate", "self", "super", "core", "std", "alloc")):
                further = f"self::{further}"
            return self.file(at, further, depth + 1)
        return at

    def stand_in(self, module: Module) -> Module:
        for length in range(1, len(module) + 1):
            if instead := self.stand_ins.get(module[:length]):
                whole = instead + module[length:]
                return whole if whole in self.code else instead
        return module

    def imports(self) -> dict[Module, set[Module]]:
        found: dict[Module, set[Module]] = {}
        for module, text in self.code.items():
            paths = [
                (path, bool(visibility))
                for visibility, tree in USE.findall(text)
                for path, _ in leaves(tree)
            ]
            paths += [(path, False) for path in PATH.findall(USE.sub(" ", text))]
            found[module] = set()
            for path, exported in paths:
                first = path.split("::")[0]
                if first not in ("crate", "self", "super") and (*module, first) not in self.code:
                    continue
                target = self.file(module, path)
                own = target[: len(module)] == module
                if target != module[: len(target)] and not (own and exported):
                    found[module] |= {target, self.stand_in(target)}
        return found


def circles(imports: dict[Module, set[Module]]) -> list[list[Module]]:
    """Returns the strongly connected components with more than one file."""

    def reached(start: Module) -> set[Module]:
        seen: set[Module] = set()
        left = [start]
        while left:
            for target in imports[left.pop()] - seen:
                seen.add(target)
                left.append(target)
        return seen

    reach = {module: reached(module) for module in imports}
    groups = {
        frozenset(other for other in reach[module] if module in reach[other])
        for module in imports
        if module in reach[module]
    }
    return sorted(map(sorted, groups))


def main(arguments: list[str]) -> int:
    listing = "--list" in arguments
    folders = [argument for argument in arguments if argument != "--list"] or ["core/src"]
    crate = Crate(Path(folders[0]))
    imports = crate.imports()

    def name(module: Module) -> str:
        return "::".join(module) or "lib"

    if listing:
        for module, targets in sorted(imports.items()):
            print(f"{name(module)}: {', '.join(sorted(map(name, targets)))}")
    found = circles(imports)
    for circle in found:
        print(f"{len(circle)} files import each other in a circle:")
        for module in circle:
            within = sorted(name(target) for target in imports[module] & set(circle))
            print(f"  {name(module)} imports {', '.join(within)}")
    if not found:
        print(f"{len(imports)} files of {folders[0]} import each other without a circle")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
