"""Readers without Spark around them, against a real broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.topics import create_topic
from tests.spark.requirements import missing_pyspark, module_or_skip

from ottla.client.wire.cluster import Cluster


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    return module_or_skip(missing_pyspark(), parent, module_path)


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[Cluster]:
    with Cluster(bootstrap) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return create_topic(cluster)
