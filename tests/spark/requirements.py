"""What Spark's tests need; without it a module is skipped, with the reason."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

JAVA_MIN = 17


def missing_pyspark() -> str:
    """Why pyspark cannot be imported; empty if it can."""
    if importlib.util.find_spec("pyspark"):
        return ""
    return "tests of the Spark source need pyspark: pip install 'ottla[spark]'"


def missing_java() -> str:
    """Why Spark cannot run; empty if it can."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return f"tests with Spark need Java {JAVA_MIN} or newer; there is none"
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', shown)
    if version is None or int(version[1]) < JAVA_MIN:
        return f"tests with Spark need Java {JAVA_MIN} or newer, not {shown.splitlines()[:1]}"
    return ""


def module_or_skip(reason: str, parent: pytest.Collector, path: Path) -> pytest.Module | None:
    """For `pytest_pycollect_makemodule`: a module that is not imported, when there is a reason."""
    if not reason:
        return None

    class Skipped(pytest.Module):
        def collect(self) -> list[pytest.Item]:
            pytest.skip(reason, allow_module_level=True)

    module: pytest.Module = Skipped.from_parent(parent, path=path)
    return module
