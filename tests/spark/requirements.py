"""The requirements of Spark tests; without them a module is skipped, with the reason."""

import importlib.util
from pathlib import Path

import pytest


def missing_pyspark() -> str:
    """Why pyspark cannot be imported; empty if it can."""
    if importlib.util.find_spec("pyspark"):
        return ""
    return "tests of the Spark source need pyspark: pip install 'ottla[spark]'"


def missing_java() -> str:
    """Why Spark cannot run although pyspark can be imported; empty if it can."""
    from pyspark_ottla.java import JavaNotFound, find_java

    try:
        find_java()
    except JavaNotFound as error:
        return str(error)
    return ""


def module_or_skip(reason: str, parent: pytest.Collector, path: Path) -> pytest.Module | None:
    """For `pytest_pycollect_makemodule`: a module that is not imported, if there is a reason."""
    if not reason:
        return None

    class Skipped(pytest.Module):
        def collect(self) -> list[pytest.Item]:
            pytest.skip(reason, allow_module_level=True)

    module: pytest.Module = Skipped.from_parent(parent, path=path)
    return module
