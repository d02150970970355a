"""From a clone to a first ID: `make LANGUAGE`, then the lines it prints, in an empty project."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(command: str, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def printed(language: str) -> str:
    """The lines that follow `In your project:`."""
    return run(f"make --no-print-directory {language}", ROOT).split("In your project:\n\n")[1]


def is_id(text: str) -> bool:
    return int(text) > 1 << 60


def test_python(tmp_path: Path) -> None:
    run(f"{sys.executable} -m venv new", tmp_path)
    run(f"export PATH=$PWD/new/bin:$PATH; {printed('python')}", tmp_path)
    program = "from polyflake import Snowflake; print(Snowflake(node=7).next_id())"
    assert is_id(run(f"new/bin/python -c '{program}'", tmp_path))


def test_node(tmp_path: Path) -> None:
    run(f"npm init -y; {printed('node')}", tmp_path)
    program = 'new (require("polyflake").Snowflake)({ node: 7 }).nextIdString()'
    assert is_id(run(f"node -p '{program}'", tmp_path))


def test_c(tmp_path: Path) -> None:
    program = (ROOT / "bindings-c/examples/quickstart.c").read_text()
    (tmp_path / "program.c").write_text(program)
    run(f"{printed('c')}./program", tmp_path)


GO = """
package main

import (
	"fmt"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

func main() {
	ids, err := polyflake.New(polyflake.Node(7))
	if err != nil {
		panic(err)
	}
	id, err := ids.NextID()
	if err != nil {
		panic(err)
	}
	fmt.Println(id)
}
"""


def test_go(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text(GO)
    run(f"go mod init example.org/app; {printed('go')}", tmp_path)
    assert is_id(run("go run .", tmp_path))


def test_php(tmp_path: Path) -> None:
    require = printed("php").split("in PHP: ")[1].strip()
    (tmp_path / "program.php").write_text(
        f"<?php {require} $ids = new Polyflake\\Snowflake(node: 7); echo $ids->nextId();"
    )
    assert is_id(run("php -d ffi.enable=1 program.php", tmp_path))


JAVA = """
class Program {
    public static void main(String[] arguments) {
        System.out.println(io.polyflake.Snowflake.builder().node(7).build().nextId());
    }
}
"""


def jdk() -> str:
    """The home folder of a suitable JDK."""
    found = subprocess.run(
        ROOT / "bindings-c/java/jdk", stdout=subprocess.PIPE, text=True, check=False
    )
    if found.returncode != 0:
        pytest.skip("there is no JDK of Java 22 or later")
    return found.stdout.strip()


def test_java(tmp_path: Path) -> None:
    home = jdk()
    (tmp_path / "Program.java").write_text(JAVA)
    command = printed("java").split("without Maven: ")[1].strip()
    # The jar contains the library.
    assert is_id(run(f"unset LD_LIBRARY_PATH; {home}/bin/{command}", tmp_path))


POM = """
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example</groupId>
  <artifactId>app</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>22</maven.compiler.source>
    <maven.compiler.target>22</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    DEPENDENCIES
  </dependencies>
  <build>
    BUILD
  </build>
</project>
"""

KOTLIN = "2.3.21"
KOTLIN_STDLIB = f"""
    <dependency>
      <groupId>org.jetbrains.kotlin</groupId>
      <artifactId>kotlin-stdlib</artifactId>
      <version>{KOTLIN}</version>
    </dependency>
"""
KOTLIN_BUILD = f"""
    <sourceDirectory>src/main/kotlin</sourceDirectory>
    <plugins>
      <plugin>
        <groupId>org.jetbrains.kotlin</groupId>
        <artifactId>kotlin-maven-plugin</artifactId>
        <version>{KOTLIN}</version>
        <executions>
          <execution>
            <phase>compile</phase>
            <goals><goal>compile</goal></goals>
          </execution>
        </executions>
      </plugin>
    </plugins>
"""


def sample(language: str) -> str:
    """The program in the README."""
    readme = (ROOT / "bindings-c/java/README.md").read_text()
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    return next(block for block in blocks if re.search("void main|fun main", block))


def check_output(said: str, code: str) -> None:
    """The last lines must match the comments on the print statements."""
    wanted = re.findall(r"print(?:ln)?\(.*\);? // (.*)$", code, re.MULTILINE)
    assert len(wanted) >= 2
    assert said.splitlines()[-len(wanted) :] == wanted


@pytest.mark.parametrize("language", ["java", "kotlin"])
def test_maven(tmp_path: Path, language: str) -> None:
    """An empty project with the README's dependency, and a local repository with nothing else."""
    home = jdk()
    readme = (ROOT / "bindings-c/java/README.md").read_text()
    found = re.search(r"^<dependency>.*?</dependency>$", readme, re.DOTALL | re.MULTILINE)
    assert found is not None
    is_kotlin = language == "kotlin"
    pom = POM.replace("DEPENDENCIES", found[0] + (KOTLIN_STDLIB if is_kotlin else ""))
    (tmp_path / "pom.xml").write_text(pom.replace("BUILD", KOTLIN_BUILD if is_kotlin else ""))
    source = tmp_path / f"src/main/{language}"
    source.mkdir(parents=True)
    code = sample(language)
    (source / ("Program.kt" if is_kotlin else "QuickStart.java")).write_text(code)
    (tmp_path / ".mvn").mkdir()
    (tmp_path / ".mvn/maven.config").write_text(f"-B\n-q\n-Dmaven.repo.local={tmp_path}/maven\n")
    install = printed("java").splitlines()[0]
    run(f"export JAVA_HOME={home}; {install}; mvn compile", tmp_path)
    jars = sorted(tmp_path.glob("maven/io/polyflake/**/*.jar"))
    jars += sorted(tmp_path.glob(f"maven/**/kotlin-stdlib-{KOTLIN}.jar"))
    path = ":".join(["target/classes", *map(str, jars)])
    java = f"{home}/bin/java --enable-native-access=ALL-UNNAMED -cp {path}"
    main = "ProgramKt" if is_kotlin else "QuickStart"
    check_output(run(f"unset LD_LIBRARY_PATH; {java} {main}", tmp_path), code)


# Debian's Gradle is too old to run on a suitable JDK, but it can start that JDK's programs.
GRADLE = """
apply plugin: 'application'
if (project.hasProperty('mainClassName')) {
    mainClassName = 'QuickStart'
} else {
    application.mainClass = 'QuickStart'
}
repositories { mavenLocal() }
dependencies { DEPENDENCY }
compileJava.options.fork = true
compileJava.options.forkOptions.executable = "$jdk/bin/javac"
run.executable = "$jdk/bin/java"
applicationDefaultJvmArgs = ['--enable-native-access=ALL-UNNAMED']
"""


def test_gradle(tmp_path: Path) -> None:
    home = jdk()
    if shutil.which("gradle") is None:
        pytest.skip("there is no Gradle")
    readme = (ROOT / "bindings-c/java/README.md").read_text()
    found = re.search(r"^implementation\(.*\)$", readme, re.MULTILINE)
    assert found is not None
    (tmp_path / "build.gradle").write_text(GRADLE.replace("DEPENDENCY", found[0]))
    (tmp_path / "settings.gradle").write_text("rootProject.name = 'app'\n")
    source = tmp_path / "src/main/java"
    source.mkdir(parents=True)
    code = sample("java")
    (source / "QuickStart.java").write_text(code)
    local = f"-Dmaven.repo.local={tmp_path}/maven"
    run(f"JAVA_HOME={home} {printed('java').splitlines()[0]} -B -q {local}", tmp_path)
    gradle = f"gradle --offline -q -Pjdk={home} {local} run"
    check_output(run(f"unset LD_LIBRARY_PATH JAVA_HOME; {gradle}", tmp_path), code)


RUST = """
fn main() {
    let ids = polyflake::Snowflake::builder().node(7_u64).build().unwrap();
    println!("{}", ids.next_id().unwrap());
}
"""


@pytest.mark.parametrize("lines", [1, 2])
def test_rust(tmp_path: Path, lines: int) -> None:
    run("cargo init -q --name app", tmp_path)
    run("\n".join(printed("rust").splitlines()[:lines]), tmp_path)
    (tmp_path / "src/main.rs").write_text(RUST)
    assert is_id(run("cargo run -q", tmp_path))
