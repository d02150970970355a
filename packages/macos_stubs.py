"""Makes stubs for macOS's frameworks, for a linker without Apple's SDK.

A stub (.tbd) lists a framework's symbols. These stubs list the symbols that the pinned crates
declare; the linker looks up only those that are used.
"""

import json
import re
import subprocess
from pathlib import Path

CRATES = {
    "CoreFoundation": ["core-foundation-sys", "objc2-core-foundation"],
    "Security": ["security-framework-sys"],
    "SystemConfiguration": ["objc2-system-configuration"],
}
PREFIX = r"(?:k?(?:Sec|SSL|CF|SC|CMS|Authorization)|errAuthorization|__CF)[A-Z_a-z]\w*"
STUB = """--- !tapi-tbd
tbd-version: 4
targets: [ x86_64-macos, arm64-macos ]
install-name: '/System/Library/Frameworks/{0}.framework/Versions/A/{0}'
exports:
- targets: [ x86_64-macos, arm64-macos ]
  symbols: [
    {1} ]
...
"""


def write(to: Path) -> None:
    """Writes the stubs to a folder, for rustc's `-L framework=`."""
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--format-version", "1", "--locked"],
            cwd=Path(__file__).parent,
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
    )
    folders = {each["name"]: Path(each["manifest_path"]).parent for each in metadata["packages"]}
    for framework, crates in CRATES.items():
        symbols: set[str] = set()
        for file in (file for crate in crates for file in folders[crate].rglob("src/**/*.rs")):
            source = file.read_text()
            symbols |= set(re.findall(rf"\b(?:fn|static)\s+({PREFIX})", source))
            # Constants declared by a macro.
            symbols |= set(re.findall(r"\b(kSecKeyAlgorithm\w+)", source))
        folder = to / f"{framework}.framework"
        folder.mkdir(parents=True, exist_ok=True)
        listed = ",\n    ".join(f"_{symbol}" for symbol in sorted(symbols))
        (folder / f"{framework}.tbd").write_text(STUB.format(framework, listed))
