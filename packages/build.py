#!/usr/bin/env python3
"""Builds what users install, for every platform in platforms.toml, in dist/.

    packages/build.py platform [NAME...]    the wheel, the npm package and the C library for
                                            these platforms, or for all
    packages/build.py command [NAME...]     the command for them
    packages/build.py common                the packages that are the same everywhere, and
                                            those made from the platforms' parts
    packages/build.py maven                 of those, only the Java packages

Cross-built with zig: see with-zig. `make packages-all` runs all three.
"""

import gzip
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

import macos_stubs

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
TARGET = ROOT / "target" / "packages"
STAGE = TARGET / "stage"
# PROFILE=dev builds without optimization, which is faster, for trying out the packages.
PROFILE = os.environ.get("PROFILE") or "release"
BUILT_IN = "debug" if PROFILE == "dev" else PROFILE
# The command has its own profile.
COMMAND_PROFILE = "dev" if PROFILE == "dev" else "command"
PLATFORMS = tomllib.loads((ROOT / "packages" / "platforms.toml").read_text())
CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text())
VERSION = CARGO["workspace"]["package"]["version"]
# Everything in an archive has the same date, so that archives are identical no matter when they are
# built.
DATE = (1980, 1, 1, 0, 0, 0)
EPOCH = 315532800
MAVEN = DIST / "maven/io/polyflake/polyflake" / VERSION
GO_MODULE = "github.com/polyflake/polyflake/bindings-c/go"
CRATES = ["polyflake", "polyflake-coordination", "polyflake-cli"]
# The C library's file names: the first is its full name, and the others are links to it.
SHARED = {
    "linux": [f"libpolyflake.so.{VERSION}", "libpolyflake.so.0", "libpolyflake.so"],
    "darwin": [f"libpolyflake.{VERSION}.dylib", "libpolyflake.0.dylib", "libpolyflake.dylib"],
    "win32": ["polyflake.dll"],
}
# A platform's wheels: for Python with a GIL, for 3.14 without one, and for all later versions
# without one. Each has maturin's arguments, and the function that Python calls to load the module.
PYTHONS = {
    "cp311-abi3": ([], "PyInit__polyflake"),
    "cp314-cp314t": (["-i", "python3.14t"], "PyInit__polyflake"),
    "cp315-abi3t": (["-i", "python3.15t", "--features", "abi3t"], "PyModExport__polyflake"),
}
BUILT = {
    "linux": ("libpolyflake.so", "libpolyflake_node.so"),
    "darwin": ("libpolyflake.dylib", "libpolyflake_node.dylib"),
    "win32": ("polyflake.dll", "polyflake_node.dll"),
}


def run(*command, cwd=ROOT, env=None, capture=False):
    print("+", shlex.join(str(part) for part in command), flush=True)
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=os.environ | (env or {}),
        check=False,
        text=True,
        stdout=subprocess.PIPE if capture else None,
    )
    if result.returncode != 0:
        raise SystemExit(f"it ended with {result.returncode}: {command[0]}")
    return result.stdout


def settings(platform, static=False):
    """The environment for every build. None of this machine's paths end up in the output."""
    flags = [
        f"--remap-path-prefix={os.environ.get('CARGO_HOME', Path.home() / '.cargo')}=/cargo",
        f"--remap-path-prefix={ROOT}=/polyflake",
    ]
    if "musl" in platform["target"]:
        flags += ["-C", f"target-feature={'+' if static else '-'}crt-static"]
    more = {}
    if platform["npm"]["os"] == "darwin":
        stubs = TARGET / "macos"
        macos_stubs.write(stubs)
        flags += ["-L", f"framework={stubs}"]
        more["MACOSX_DEPLOYMENT_TARGET"] = platform["macos"]
    if platform["npm"]["os"] == "win32":
        # The same for C, whose debug information, in CodeView format, stays in the static library.
        maps = [flag.replace("--remap-path-prefix", "-ffile-prefix-map") for flag in flags]
        more["CFLAGS"] = " ".join([*maps, "-gno-codeview-command-line"])
    return more | {
        # The date in wheels and in their bills of materials.
        "SOURCE_DATE_EPOCH": str(EPOCH),
        "CARGO_TARGET_DIR": str(TARGET),
        **{
            f"CARGO_PROFILE_{profile.upper()}_{name}": value
            for profile in {PROFILE, COMMAND_PROFILE}
            for name, value in (("DEBUG", "false"), ("STRIP", "symbols"))
        },
        "RUSTFLAGS": " ".join(flags),
    }


def strip_archive(path):
    """Strips debug information from a static library, with rustc's own tool."""
    sysroot = Path(run("rustc", "--print", "sysroot", capture=True).strip())
    objcopy = next(sysroot.glob("lib/rustlib/*/bin/rust-objcopy"))
    run(objcopy, "--strip-debug", path, env={"LD_LIBRARY_PATH": str(sysroot / "lib")})


def write_tar(path, folder, top):
    """A .tar.gz of a folder, identical no matter when and where it is written."""
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, EPOCH) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in sorted(folder.rglob("*")):
            info = archive.gettarinfo(file, f"{top}/{file.relative_to(folder)}")
            info.mtime, info.uid, info.gid, info.uname, info.gname = EPOCH, 0, 0, "", ""
            if info.isfile():
                info.mode = 0o755 if info.mode & 0o100 else 0o644
                with file.open("rb") as content:
                    archive.addfile(info, content)
            else:
                info.mode = 0o755
                archive.addfile(info)


def write_zip(path, folder, top):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            info = zipfile.ZipInfo(f"{top}{file.relative_to(folder)}", DATE)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, file.read_bytes())


def text(name):
    return (ROOT / "packages" / name).read_text().strip()


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def npm_pack(folder):
    run("npm", "pack", "--silent", "--pack-destination", DIST, folder)


def npm_platform(template, name, where, description, npm, files):
    """Packs a platform's npm package, based on the package.json of the one for Linux."""
    package = json.loads((ROOT / template / "package.json").read_text())
    package |= {"name": name, "version": VERSION, "description": description}
    package["os"], package["cpu"] = [npm["os"]], [npm["cpu"]]
    package.pop("libc", None)
    if "libc" in npm:
        package["libc"] = [npm["libc"]]
    package["files"] = [file for file, _ in files]
    if "main" in package:
        package["main"] = files[0][0]
    package["repository"]["directory"] = template
    stage = fresh(STAGE / "npm" / name.replace("/", "-"))
    (stage / "package.json").write_text(json.dumps(package, indent=2) + "\n")
    (stage / "README.md").write_text(
        f"# {name}\n\n{description}. It is installed with {where}; there is no need to\n"
        "install it yourself.\n"
    )
    shutil.copy(ROOT / "LICENSE", stage)
    for file, source in files:
        shutil.copy(source, stage / file)
        (stage / file).chmod(0o755)
    npm_pack(stage)


def c_library(name, platform, libraries, built):
    """The C library as a folder to unpack anywhere: polyflake.pc uses relative paths."""
    system = platform["npm"]["os"]
    stage = fresh(STAGE / "c" / name)
    for folder in ("include", "lib/pkgconfig", "share/doc/polyflake"):
        (stage / folder).mkdir(parents=True)
    shutil.copy(ROOT / "LICENSE", stage / "share/doc/polyflake")
    shutil.copy(ROOT / "bindings-c/include/polyflake.h", stage / "include")
    shutil.copy(built / "libpolyflake.a", stage / "lib")
    if system != "win32":  # objcopy cannot read the import libraries in it
        strip_archive(stage / "lib/libpolyflake.a")
    full, *links = SHARED[system]
    shared = stage / ("bin" if system == "win32" else "lib") / full
    shared.parent.mkdir(exist_ok=True)
    shutil.copy(built / BUILT[system][0], shared)
    for link in links:
        (stage / "lib" / link).symlink_to(full)
    if system == "win32":
        shutil.copy(built / "libpolyflake.dll.a", stage / "lib")
    # As in tools/install-c: without the unwinder, which the compiler adds.
    private = re.sub(r"-lgcc_s\s*", "", libraries)
    # The windows-sys crate names its own library, but Windows' libraries work as well.
    private = re.sub(r"-lwindows\.[\d.]+", "-lcrypt32", private)
    (stage / "lib/pkgconfig/polyflake.pc").write_text(
        "prefix=${pcfiledir}/../..\n"
        "includedir=${prefix}/include\n"
        "libdir=${prefix}/lib\n\n"
        "Name: polyflake\n"
        "Description: 64-bit, time-ordered, unique IDs (Snowflakes)\n"
        f"Version: {VERSION}\n"
        "Cflags: -I${includedir}\n"
        "Libs: -L${libdir} -lpolyflake\n"
        f"Libs.private: {private}\n"
    )
    top = f"polyflake-c-{VERSION}-{name}"
    write_tar(DIST / f"{top}.tar.gz", stage, top)


def linking(platform, file, exports):
    """The linker's arguments for a shared library. For macOS, they set its name, which would
    otherwise be the path it was built at: programs find it through their own rpath. For Windows,
    they list its exports, which would otherwise be every function in it: cargo-zigbuild leaves out
    the list that rustc makes.
    """
    system = platform["npm"]["os"]
    if system == "darwin":
        return ["-C", f"link-arg=-Wl,-install_name,@rpath/{file}"]
    if system == "win32":
        definition = TARGET / f"{file}.def"
        definition.write_text("".join(f"{line}\n" for line in ("EXPORTS", *exports)))
        return ["-C", f"link-arg={definition}"]
    return []


def c_functions():
    header = (ROOT / "bindings-c/include/polyflake.h").read_text()
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    return sorted(set(re.findall(r"\b(polyflake_\w+)\(", code)))


def wheel(with_zig, manifest, *arguments, env):
    """Makes a wheel, and returns the folder it was packed from."""
    out = fresh(STAGE / "maturin")
    run(*with_zig, "maturin", "build", "-q", "-m", manifest, "--out", out, *arguments, env=env)
    (built,) = out.iterdir()
    stage = fresh(STAGE / "wheel")
    run("wheel", "unpack", "-d", stage, built)
    (unpacked,) = stage.iterdir()
    # Python with a GIL can also load abi3t, and would choose it as the newer one, but abi3 is
    # faster there.
    (tags,) = unpacked.glob("*.dist-info/WHEEL")
    tags.write_text(re.sub(r"^Tag: cp315-abi3-.*\n", "", tags.read_text(), flags=re.MULTILINE))
    # The bill of materials names the folder the wheel was built in.
    for bill in unpacked.glob("*.dist-info/sboms/*.json"):
        bill.write_text(bill.read_text().replace(f"file://{ROOT}", "file:///polyflake"))
    run("wheel", "pack", "-d", DIST, unpacked, env=env)
    return unpacked


def bindings(name, platform):
    target, system = platform["target"], platform["npm"]["os"]
    built = TARGET / target / BUILT_IN
    env = settings(platform)
    if system == "win32":
        env["LIBNODE_PATH"] = str(libnode())
    with_zig = [ROOT / "packages/with-zig", platform["zig"]]
    cargo = ["--locked", "--profile", PROFILE, "--target", target]
    # This build also reports the system libraries that a static library needs.
    notes = TARGET / "native-static-libs" / target
    notes.parent.mkdir(parents=True, exist_ok=True)
    run(
        *with_zig,
        *("cargo", "rustc", *cargo, "-p", "polyflake-c", "--"),
        *("--print", f"native-static-libs={notes}"),
        *linking(platform, SHARED[system][:2][-1], c_functions()),
        env=env,
    )
    c_library(name, platform, notes.read_text().strip(), built)

    addon = f"polyflake.{name}.node"
    run(
        *with_zig,
        *("cargo", "rustc", *cargo, "-p", "polyflake-node", "--"),
        *linking(platform, addon, ["napi_register_module_v1"]),
        env=env,
    )
    npm_platform(
        "bindings-node/npm/linux-x64-gnu",
        f"@polyflake/{name}",
        "`polyflake`",
        f"The native half of polyflake for {platform['describe']}",
        platform["npm"],
        [(addon, built / BUILT[system][1])],
    )

    for tag, (options, entry) in PYTHONS.items():
        wheel(
            with_zig,
            *("bindings-python/Cargo.toml", *options, *cargo, *compatibility(platform["wheel"])),
            *("--", *linking(platform, f"_polyflake.{tag}.so", [entry])),
            env=env,
        )


def compatibility(tags):
    return [argument for tag in tags for argument in ("--compatibility", tag)]


def libnode():
    """napi-build requires Node's import library for Windows, but uses nothing in it: the addon
    looks up its symbols when it is loaded.
    """
    folder = TARGET / "libnode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "libnode.dll").touch()
    (folder / "libnode.a").write_bytes(b"!<arch>\n")
    return folder


def command(platform):
    kind, target = platform["command"], platform["target"]
    program = "polyflake.exe" if platform["npm"]["os"] == "win32" else "polyflake"
    env = settings(platform, static=True)
    with_zig = [ROOT / "packages/with-zig", platform["zig"]]
    packed = wheel(
        with_zig,
        "cli/Cargo.toml",
        *("--locked", "--profile", COMMAND_PROFILE, "--target", target),
        *compatibility(kind["wheel"]),
        env=env,
    )
    # The wheel, the npm package and the archive contain the same program.
    (built,) = packed.glob(f"*.data/scripts/{program}")
    npm = {key: platform["npm"][key] for key in ("os", "cpu")}
    npm_platform(
        "cli/npm/linux-x64",
        f"@polyflake/cli-{kind['name']}",
        "`polyflake-cli`",
        f"The program of polyflake-cli for {kind['describe']}",
        npm,
        [(program, built)],
    )
    top = f"polyflake-{VERSION}-{kind['name']}"
    stage = fresh(STAGE / "command" / kind["name"])
    for source in (built, ROOT / "LICENSE", ROOT / "cli/README.md"):
        shutil.copy(source, stage)
    if program.endswith(".exe"):
        write_zip(DIST / f"{top}.zip", stage, f"{top}/")
    else:
        write_tar(DIST / f"{top}.tar.gz", stage, top)


def timed(what, build, *arguments):
    started = time.monotonic()
    build(*arguments)
    print(f"built {what} in {time.monotonic() - started:.0f} s", flush=True)


def platforms(names):
    for name in names or PLATFORMS:
        run("rustup", "target", "add", PLATFORMS[name]["target"])
        timed(name, bindings, name, PLATFORMS[name])


def commands(names):
    for name in names or PLATFORMS:
        if "command" in PLATFORMS[name]:
            timed(f"the command for {name}", command, PLATFORMS[name])


def npm_main():
    """The packages that users install by name, which depend on the platforms' packages."""
    run(ROOT / "bindings-node/build.sh", "wasm")
    shutil.copy(ROOT / "cli/README.md", ROOT / "cli/npm/polyflake-cli")
    shutil.copy(ROOT / "LICENSE", ROOT / "cli/npm/polyflake-cli")
    commands = [platform["command"] for platform in PLATFORMS.values() if "command" in platform]
    for folder, names in (
        ("bindings-node", [f"@polyflake/{name}" for name in PLATFORMS]),
        ("cli/npm/polyflake-cli", [f"@polyflake/cli-{kind['name']}" for kind in commands]),
    ):
        stage = fresh(STAGE / "npm" / Path(folder).name)
        packed = run(
            "npm", "pack", "--silent", "--pack-destination", stage, cwd=ROOT / folder, capture=True
        )
        run("tar", "-xzf", stage / packed.split()[-1], "-C", stage)
        manifest = stage / "package/package.json"
        package = json.loads(manifest.read_text())
        for only_here in ("workspaces", "devDependencies", "scripts"):
            package.pop(only_here, None)
        package["optionalDependencies"] = dict.fromkeys(sorted(names), VERSION)
        manifest.write_text(json.dumps(package, indent=2) + "\n")
        npm_pack(stage / "package")


def crates():
    packages = [argument for crate in CRATES for argument in ("-p", crate)]
    env = {"CARGO_TARGET_DIR": str(TARGET)}
    # The packages are not built again, which would take as long as building for a platform.
    run("cargo", "package", "--locked", "--allow-dirty", "--no-verify", *packages, env=env)
    for crate in CRATES:
        shutil.copy(TARGET / "package" / f"{crate}-{VERSION}.crate", DIST)


def tracked(folder):
    """The files of a folder that are in git."""
    names = run("git", "ls-files", "-z", folder, capture=True)
    return [ROOT / name for name in names.split("\0") if name]


def copy_tracked(folder, stage, left_out):
    for file in tracked(folder):
        relative = file.relative_to(ROOT / folder)
        if not left_out(str(relative)):
            (stage / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, stage / relative)


def replace_install(readme, by):
    """Replaces the Install section, which in the repository explains how to build the package."""
    pattern = r"(?<=^## Install\n\n).*?(?=\n\n## )"
    changed, count = re.subn(pattern, lambda _: by, readme.read_text(), flags=re.DOTALL | re.M)
    if count != 1:
        raise SystemExit(f"{readme} has {count} Install sections; it takes one")
    readme.write_text(changed)


def built_platforms():
    """The platforms whose C library has been built. A release has all of them."""
    return [name for name in PLATFORMS if (STAGE / "c" / name).is_dir()]


def shared_library(name):
    system = PLATFORMS[name]["npm"]["os"]
    return STAGE / "c" / name / ("bin" if system == "win32" else "lib") / SHARED[system][0]


def go_module():
    """The Go module with static libraries, as a module proxy's files. The one in git has none."""
    stage = fresh(STAGE / "go")
    tests = ("testdata/", "test.sh")
    copy_tracked(
        "bindings-c/go", stage, lambda name: name.startswith(tests) or name.endswith("_test.go")
    )
    shutil.copy(ROOT / "LICENSE", stage)
    shutil.copy(ROOT / "bindings-c/include/polyflake.h", stage)
    # The libraries are all in the package's folder: `go mod vendor` copies only folders with Go
    # files.
    for name in (names := built_platforms()):
        platform = PLATFORMS[name]
        c_stage = STAGE / "c" / name
        shutil.copy(c_stage / "lib/libpolyflake.a", stage / f"libpolyflake_{name}.a")
        private = re.search(
            r"^Libs.private: (.*)$", (c_stage / "lib/pkgconfig/polyflake.pc").read_text(), re.M
        )
        (stage / f"link_{name.replace('-', '_')}.go").write_text(
            f"//go:build !polyflake_pkgconfig && {platform['go']}\n\n"
            "package polyflake\n\n"
            "// #cgo CFLAGS: -I${SRCDIR}\n"
            f"// #cgo LDFLAGS: ${{SRCDIR}}/libpolyflake_{name}.a {private[1]}\n"
            'import "C"\n'
        )
    those = " || ".join(f"({PLATFORMS[name]['go']})" for name in names)
    (stage / "link.go").write_text(
        f"//go:build polyflake_pkgconfig || !({those})\n\n"
        "package polyflake\n\n"
        "// With the build tag polyflake_pkgconfig, and where the module has no library.\n\n"
        "// #cgo pkg-config: polyflake\n"
        'import "C"\n'
    )
    replace_install(stage / "README.md", text("go-install.md"))
    proxy = fresh(DIST / "go") / GO_MODULE / "@v"
    proxy.mkdir(parents=True)
    (proxy / "list").write_text(f"v{VERSION}\n")
    (proxy / f"v{VERSION}.info").write_text(
        json.dumps(
            {
                "Version": f"v{VERSION}",
                "Time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)),
            }
        )
        + "\n"
    )
    shutil.copy(stage / "go.mod", proxy / f"v{VERSION}.mod")
    write_zip(proxy / f"v{VERSION}.zip", stage, f"{GO_MODULE}@v{VERSION}/")


def composer_archive():
    """The PHP package with each platform's shared library, in the form a Composer repository of
    type `artifact` accepts.
    """
    stage = fresh(STAGE / "composer")
    tests = ("tests/", "test.sh", "phpunit.xml", "phpstan.neon", "phpcs.xml")
    copy_tracked("bindings-c/php", stage, lambda name: name.startswith(tests))
    for name in built_platforms():
        full, *links = SHARED[PLATFORMS[name]["npm"]["os"]]
        (stage / "lib" / name).mkdir(parents=True)
        shutil.copy(shared_library(name), stage / "lib" / name / (links[0] if links else full))
    manifest = stage / "composer.json"
    package = json.loads(manifest.read_text())
    manifest.write_text(
        json.dumps({"name": package.pop("name"), "version": VERSION} | package, indent=4) + "\n"
    )
    replace_install(stage / "README.md", text("php-install.md"))
    write_zip(DIST / f"polyflake-php-{VERSION}.zip", stage, "")


def maven_repository():
    """The Java packages as a Maven repository: the jar with every platform's library, a jar for
    each platform alone, sources and Javadoc. Maven Central also requires signatures, which
    packages/publish makes.
    """
    home = run(ROOT / "bindings-c/java/jdk", capture=True).strip()
    stage = fresh(STAGE / "java")
    built = stage / "built"
    run(
        *("mvn", "-B", "-q", "-f", ROOT / "bindings-c/java", "-Dmaven.test.skip"),
        # The libraries are added later: at this point, Maven would add them to the sources too.
        *(f"-Dbuilt={built}", f"-Dnatives={stage / 'none'}"),
        "-Dproject.build.outputTimestamp=1980-01-01T00:00:02Z",  # the earliest that Maven accepts
        *("package", "source:jar-no-fork", "javadoc:jar"),
        env={"JAVA_HOME": home},
    )
    fresh(MAVEN)
    artifact = f"polyflake-{VERSION}"
    shutil.copy(ROOT / "bindings-c/java/pom.xml", MAVEN / f"{artifact}.pom")
    for classifier in ("sources", "javadoc"):
        shutil.copy(built / f"{artifact}-{classifier}.jar", MAVEN)
    jar = stage / "jar"
    shutil.unpack_archive(built / f"{artifact}.jar", jar, "zip")
    every = built_platforms()
    for classifier, names in (("", every), *((f"-{name}", [name]) for name in every)):
        natives = fresh(jar / "io/polyflake/native")
        for name in names:
            (natives / name).mkdir()
            file = BUILT[PLATFORMS[name]["npm"]["os"]][0]
            shutil.copy(shared_library(name), natives / name / file)
        write_zip(MAVEN / f"{artifact}{classifier}.jar", jar, "")
    for file in sorted(MAVEN.iterdir()):
        for kind in ("md5", "sha1"):
            digest = hashlib.new(kind, file.read_bytes()).hexdigest()
            file.with_name(f"{file.name}.{kind}").write_text(digest)


def bill_of_materials():
    """The CycloneDX file that maturin put into each wheel, for people who do not unpack wheels."""
    for built in DIST.glob("*.whl"):
        with zipfile.ZipFile(built) as opened:
            for name in opened.namelist():
                if name.endswith(".cyclonedx.json"):
                    (DIST / f"{built.stem}.cdx.json").write_bytes(opened.read(name))


def checksums():
    files = sorted(file for file in DIST.rglob("*") if file.is_file() and file.name != "SHA256SUMS")
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(DIST)}\n"
        for file in files
    ]
    (DIST / "SHA256SUMS").write_text("".join(lines))


def common():
    for project in ("bindings-python", "cli"):
        run("maturin", "sdist", "-m", f"{project}/Cargo.toml", "--out", DIST)
    npm_main()
    crates()
    if missing := sorted(set(PLATFORMS) - set(built_platforms())):
        print("not built, and so in no package of Go, PHP and Java:", *missing)
    go_module()
    composer_archive()
    maven_repository()
    bill_of_materials()
    checksums()


def main():
    DIST.mkdir(exist_ok=True)
    match sys.argv[1:]:
        case ["platform", *names]:
            platforms(names)
        case ["command", *names]:
            commands(names)
        case ["common"]:
            common()
        case ["maven"]:
            maven_repository()
            checksums()
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
