import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_ottla.python import use_installed_pyspark, wrap_python

SHOW = "import os, sys; print(sys.executable); print(os.environ['PYTHONPATH']); print(sys.argv[1])"


def test_workers_do_not_see_the_archives_and_keep_the_rest() -> None:
    archives = "/spark/python/lib/pyspark.zip:/spark/python/lib/py4j-0.10.9.9-src.zip"
    path = f"{archives}:/jars/core.jar:/my place"
    shown = subprocess.run(
        [wrap_python(), "-c", SHOW, "a b"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.splitlines() == [sys.executable, "/jars/core.jar:/my place", "a b"]


def test_it_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # Where no other test creates it.
    first = wrap_python()
    assert first.parent == tmp_path
    before = first.stat().st_mtime_ns
    assert wrap_python() == first
    assert first.stat().st_mtime_ns == before


def test_what_somebody_has_chosen_stays() -> None:
    chosen = {"PYSPARK_PYTHON": "/my/python"}
    use_installed_pyspark(chosen)
    assert chosen == {"PYSPARK_PYTHON": "/my/python"}
    environment: dict[str, str] = {}
    use_installed_pyspark(environment)
    assert environment == {"PYSPARK_PYTHON": str(wrap_python())}
