"""What is chosen before Spark starts; `tests/spark/test_session.py` starts it."""

import os
import sys
from typing import Any, Self

import pytest

from pyspark_ottla.python import wrap_python
from pyspark_ottla.session import spark_session

CLUSTER = "spark://spark.example.com:7077"


class Builder:
    """A builder that builds nothing."""

    def __init__(self, **options: str) -> None:
        self._options = {name.replace("_", "."): value for name, value in options.items()}

    def master(self, master: str) -> Self:
        return self.config("spark.master", master)

    def config(self, key: str, value: str) -> Self:
        self._options[key] = value
        return self

    def getOrCreate(self) -> Self:  # noqa: N802
        return self


def workers_python(
    monkeypatch: pytest.MonkeyPatch, builder: Builder | None = None, **chosen: Any
) -> str:
    for name in ("MASTER", "PYSPARK_SUBMIT_ARGS", "PYSPARK_PYTHON"):
        monkeypatch.setenv(name, "")  # So that it is as before after the test.
        monkeypatch.delenv(name)
    monkeypatch.setattr("pyspark_ottla.java.use_java", lambda: None)
    spark_session(builder=builder or Builder(), **chosen)  # type: ignore[arg-type]
    return os.environ["PYSPARK_PYTHON"]


@pytest.mark.parametrize(
    "chosen",
    [
        {"master": CLUSTER},
        {"builder": Builder(spark_master=CLUSTER)},
        {"settings": {"spark.master": CLUSTER}},
        {"builder": Builder(spark_master="local[2]"), "master": CLUSTER},
    ],
)
def test_workers_of_a_cluster_run_a_python_that_other_machines_may_have(
    monkeypatch: pytest.MonkeyPatch, chosen: dict[str, Any]
) -> None:
    assert workers_python(monkeypatch, **chosen) == sys.executable


@pytest.mark.parametrize(
    "chosen", [{}, {"master": "local[2]"}, {"builder": Builder(spark_master="local[2]")}]
)
def test_local_workers_run_the_installed_pyspark(
    monkeypatch: pytest.MonkeyPatch, chosen: dict[str, Any]
) -> None:
    assert workers_python(monkeypatch, **chosen) == str(wrap_python())
