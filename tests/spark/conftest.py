"""A real Spark, in this process (`spark`) or in others (`local`, `standalone`, `connect`).

Needs pyspark and Java 17 or newer; skipped without them. What is slow to start is started once:
with several pytest processes, all tests that use the session in theirs stay together, and so do
those that need a cluster or a server, and otherwise the tests of one file.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.requirements import missing_java, missing_pyspark, module_or_skip

from ottla.client.wire.cluster import Cluster

if TYPE_CHECKING:
    from tests.spark.deployments import Deployment

_DEPLOYMENTS = ("deployment", "local", "standalone", "connect")

_reason = missing_pyspark() or missing_java()

# How long a query with nothing to read waits until it asks again; tests have many, beside others.
_POLLING_DELAY = "50ms"

# Spark's own failures on a busy machine: a test that meets one is rerun, and the report says so.
_FAULTS_OF_SPARK = ["Python worker failed to connect back", "Task not serializable"]


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    return module_or_skip(_reason, parent, module_path)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group(_group_of(item)))
            item.add_marker(pytest.mark.flaky(reruns=2, only_rerun=_FAULTS_OF_SPARK))
            if not _reason:
                _let_old_versions_leak(item)
    if "kill_matrix" not in config.option.markexpr:
        _leave_out_the_kill_matrix(config, items)


def _group_of(item: pytest.Item) -> str:
    fixtures = set(getattr(item, "fixturenames", ()))
    if "spark" in fixtures:
        return "spark-session"
    return f"spark-{item.path}" if fixtures.isdisjoint(_DEPLOYMENTS) else "spark-deployments"


def _let_old_versions_leak(item: pytest.Item) -> None:
    """Before Spark 4.2 no socket of a `collect` is closed."""
    from pyspark_ottla.spark_api import VERSION

    if VERSION < (4, 2):
        item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
        item.add_marker(
            pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
        )


def _leave_out_the_kill_matrix(config: pytest.Config, items: list[pytest.Item]) -> None:
    """It takes minutes, or an hour on a busy machine, so it runs only on request."""
    left_out = [item for item in items if item.get_closest_marker("kill_matrix")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session", autouse=True)
def shared_classes(pytestconfig: pytest.Config) -> None:
    """Makes every Java process start sooner; without pytest's cache it starts as always."""
    from tests.spark.class_archive import SHORT_LIVED, ClassArchive

    if "JDK_JAVA_OPTIONS" in os.environ:
        return
    cache = getattr(pytestconfig, "cache", None)
    if cache is None:
        os.environ["JDK_JAVA_OPTIONS"] = SHORT_LIVED
        return
    archive = ClassArchive(cache.mkdir("spark-classes"))
    os.environ["JDK_JAVA_OPTIONS"] = archive.options
    archive.make_if_missing()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session in this process."""
    from pyspark.sql import SparkSession
    from tests.spark.deployments import SETTINGS, base_environment

    os.environ |= base_environment()
    warehouse = tmp_path_factory.mktemp("warehouse")
    builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", warehouse)
    for name, value in (SETTINGS | {"spark.sql.streaming.pollingDelay": _POLLING_DELAY}).items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Deployment"]:
    from tests.spark.deployments import local_deployment

    with local_deployment(tmp_path_factory.mktemp("local")) as deployment:
        yield deployment


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Deployment"]:
    from tests.spark.deployments import standalone_deployment

    with standalone_deployment(tmp_path_factory.mktemp("standalone")) as deployment:
        yield deployment


@pytest.fixture(scope="session")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Deployment"]:
    from tests.spark.deployments import connect_deployment

    with connect_deployment(tmp_path_factory.mktemp("connect")) as deployment:
        yield deployment


@pytest.fixture
def deployment(request: pytest.FixtureRequest) -> "Deployment":
    """The deployment named by the test's indirect parameter."""
    found: Deployment = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[Cluster]:
    with Cluster(bootstrap) as cluster:
        yield cluster
