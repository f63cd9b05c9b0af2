import os
import sys
from pathlib import Path

from tests.fork_server import REPOSITORY

from pyspark_ottla.check import check
from pyspark_ottla.java import find_java

SOURCES = str(REPOSITORY / "src")


def pythons_finding(environment: dict[str, str]) -> tuple[bool, str]:
    return check({"JAVA_HOME": os.environ.get("JAVA_HOME", ""), **environment})[1]


def test_the_python_of_this_process_has_what_spark_needs() -> None:
    good, text = pythons_finding({"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": SOURCES})
    assert good, text
    assert sys.executable in text


def test_a_python_without_ottla_is_named_with_what_to_do(tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    good, text = pythons_finding({"PATH": str(tmp_path)})
    assert not good
    assert str(bare) in text
    assert "No module named 'pyspark'" in text
    assert "pyspark_ottla.spark_session()" in text


def test_no_python_on_the_path(tmp_path: Path) -> None:
    good, text = pythons_finding({"PATH": str(tmp_path)})
    assert not good
    assert "python3, which is not there" in text


def test_a_java_where_spark_does_not_look(tmp_path: Path) -> None:
    good, text = check({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})[0]
    assert not good
    assert "JAVA_HOME=" in text


def test_the_java_that_spark_finds() -> None:
    home = find_java().home
    assert check({"JAVA_HOME": str(home)})[0] == (True, f"Java {find_java().version} in {home}")
