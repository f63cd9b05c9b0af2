import subprocess
import sys
from pathlib import Path

import pytest
from tests.fork_server import REPOSITORY

from pyspark_ottla import java
from pyspark_ottla.java import JavaNotFound, find_java, use_java

OLD = """\
#!/bin/sh
echo '    java.home = /nowhere' >&2
echo '    java.specification.version = 1.8' >&2
"""
NEW = """\
#!/bin/sh
echo '    java.home = {home}' >&2
echo '    java.specification.version = 21' >&2
"""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine without any Java."""
    monkeypatch.setattr(java, "_USUAL_PATHS", [str(tmp_path / "jvm" / "*")])
    monkeypatch.setattr(java, "_bundled_runtime", lambda: None)
    return {"PATH": str(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def install(home: Path, program: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(program.format(home=home))
    executable.chmod(0o755)
    return home


def test_without_java_one_sentence_says_what_to_do(bare: dict[str, str]) -> None:
    with pytest.raises(JavaNotFound) as raised:
        find_java(bare)
    assert str(raised.value) == (
        "Spark needs Java 17 or 21, and there is none on this machine:"
        " install one, or pip install 'ottla[java]'"
    )


def test_java_that_is_too_old_is_named(bare: dict[str, str], tmp_path: Path) -> None:
    bare["JAVA_HOME"] = str(install(tmp_path / "old", OLD))
    with pytest.raises(JavaNotFound, match=f"JAVA_HOME={tmp_path}/old is Java 8: install"):
        find_java(bare)


def test_java_home_that_is_none_is_named(bare: dict[str, str], tmp_path: Path) -> None:
    bare["JAVA_HOME"] = str(tmp_path)
    with pytest.raises(JavaNotFound, match=f"JAVA_HOME={tmp_path} is no Java"):
        find_java(bare)


def test_java_home_goes_first(bare: dict[str, str], tmp_path: Path) -> None:
    install(tmp_path / "jvm" / "java-21", NEW)
    bare["JAVA_HOME"] = str(install(tmp_path / "own", NEW))
    assert find_java(bare) == (tmp_path / "own", 21)


def test_java_on_the_path_is_found_through_its_home(bare: dict[str, str], tmp_path: Path) -> None:
    home = install(tmp_path / "elsewhere", NEW)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java(bare) == (home, 21)


def test_a_usual_place_is_found_and_used(bare: dict[str, str], tmp_path: Path) -> None:
    bare["JAVA_HOME"] = str(install(tmp_path / "old", OLD))
    home = install(tmp_path / "jvm" / "java-21", NEW)
    assert use_java(bare).home == home
    assert bare["JAVA_HOME"] == str(home)


def test_the_recommended_versions_go_first(bare: dict[str, str], tmp_path: Path) -> None:
    install(tmp_path / "jvm" / "a-25", NEW)
    home = install(tmp_path / "jvm" / "b-21", NEW)
    assert find_java(bare).home == home


def test_the_bundled_runtime_is_wrapped_once(
    bare: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = install(tmp_path / "runtime", NEW + 'echo "$@"\n')
    monkeypatch.setattr(java, "_bundled_runtime", lambda: runtime)
    home, version = find_java(bare)
    assert version == 21
    wrapper = home / "bin" / "java"
    command = [str(wrapper), "-Xmx1g", "--add-modules=jdk.incubator.vector", "two words"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == "-Xmx1g two words\n"
    written = wrapper.stat()
    assert find_java(bare).home == home
    assert wrapper.stat() == written


def test_a_cache_that_cannot_be_written_is_no_obstacle(
    bare: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "_bundled_runtime", lambda: install(tmp_path / "runtime", NEW))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "file").touch()
    bare["XDG_CACHE_HOME"] = str(tmp_path / "file")
    home = find_java(bare).home
    assert home.parent == tmp_path
    assert (home / "bin" / "java").exists()


def test_the_command_prints_the_home(tmp_path: Path) -> None:
    home = install(tmp_path / "own", NEW)
    printed = subprocess.run(
        [sys.executable, "-m", "pyspark_ottla.java"],
        env={"JAVA_HOME": str(home), "PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed == f"{home}\n"
