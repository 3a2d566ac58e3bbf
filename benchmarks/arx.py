"""ARX as a peer: compiled from a checkout of its source, then its optimal search run by `ArxSearch.java`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("ArxSearch.java")
# Where Debian's packages put what a checkout may lack; ARX asks for the second only where it writes certificates.
DEBIAN = Path("/usr/share/java")
FROM_DEBIAN = ("pdfbox2.jar", "fontbox2.jar")
# Of Hadoop ARX needs the name of an interface.
HADOOP = ("org/apache/hadoop/io/Writable.java", "hadoop-core")
WRITABLE = """package org.apache.hadoop.io;
public interface Writable {
  void write(java.io.DataOutput to) throws java.io.IOException;
  void readFields(java.io.DataInput from) throws java.io.IOException;
}
"""
MEMORY = "-Xmx8g"


@dataclass(frozen=True)
class Arx:
    """ARX, compiled. classpath: where its classes are. version: its commit; java: what runs it."""

    classpath: str
    version: str
    java: str

    @classmethod
    def compile(cls, checkout: Path, folder: Path) -> Arx:
        """Compile a checkout into a folder, in half a minute; the program ends with one line where that fails."""
        if shutil.which("javac") is None:
            where = "docs/explanation/benchmarks.md"
            sys.exit(f"benchmarks.protect: --arx: javac is no command here. Install a JDK ({where}).")
        sources = sorted((checkout / "src" / "main").rglob("*.java"))
        if not sources:
            sys.exit(f"benchmarks.protect: --arx: {checkout} has no src/main with Java in it. Give a checkout of ARX.")
        jars = [jar for jar in sorted((checkout / "lib" / "ant").rglob("*.jar")) if "eclipse" not in jar.parts]
        jars += [DEBIAN / name for name in FROM_DEBIAN if not any("pdfbox-app" in jar.name for jar in jars)]
        if not any(HADOOP[1] in jar.name for jar in jars):
            stub = folder / HADOOP[0]
            stub.parent.mkdir(parents=True)
            stub.write_text(WRITABLE)
            sources.append(stub)
        classes = folder / "classes"
        classes.mkdir(parents=True)
        classpath = os.pathsep.join(map(str, [classes, *jars]))
        names = folder / "sources"
        names.write_text("".join(f'"{source}"\n' for source in [*sources, PROGRAM]))
        command = ["javac", "-nowarn", "-encoding", "UTF-8", "-d", str(classes), "-cp", classpath, f"@{names}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"benchmarks.protect: --arx: {checkout} does not compile:\n{done.stderr[-2000:]}")
        return cls(classpath, _commit(checkout), _java())

    def search(
        self,
        table: Path,
        hierarchies: Mapping[str, Path],
        criteria: Sequence[str],
        suppressed: float,
        least_seconds: float,
    ) -> dict[str, Any]:
        """Run ARX's optimal search by criteria on classes, by the least loss of entropy, in a process of its own.

        table: CSV, with semicolons. criteria: as gpupif writes them. least_seconds: that it is run for at least. Gives
        the seconds of the first run and of the best, the levels of the optimum, its loss, and how many of the nodes
        were checked; {"failed": why} where it fails.
        """
        given = [f"{column}={file}" for column, file in hierarchies.items()]
        command = ["java", MEMORY, "-cp", self.classpath, PROGRAM.stem, str(table), ";".join(criteria)]
        done = subprocess.run(
            [*command, str(suppressed), str(least_seconds), *given], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            return {"failed": done.stderr.strip().splitlines()[0] if done.stderr.strip() else "no message"}
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        seconds = found.pop("seconds")
        return {**found, "first": seconds[0], "best": min(seconds), "runs": len(seconds)}


def write_hierarchy(file: Path, lines: Iterable[Iterable[Any]]) -> Path:
    """Write a hierarchy in ARX's format: each line has a value, then its group at each level."""
    file.write_text("".join(";".join(map(str, line)) + "\n" for line in lines))
    return file


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _java() -> str:
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    return (done.stderr or done.stdout).splitlines()[0]
