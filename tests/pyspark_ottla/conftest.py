"""Readers without Spark, with a real broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.topics import create_topic
from tests.spark.requirements import missing_pyspark, module_or_skip

from ottla.client.wire.cluster import Cluster


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    return module_or_skip(_missing(module_path), parent, module_path)


def _missing(module_path: Path) -> str:
    if reason := missing_pyspark():
        return reason
    from pyspark_ottla.spark_api import HAS_FILTERS

    of_filters = module_path.name == "test_filters.py"
    return "Spark 4.0 pushes no filters" if of_filters and not HAS_FILTERS else ""


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[Cluster]:
    with Cluster(bootstrap) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return create_topic(cluster)
