"""The example of Spark Declarative Pipelines: two runs of its command, each with new records."""

import json
from pathlib import Path

import pyarrow.dataset
import pytest
from tests.broker_process import BrokerProcess
from tests.cli.command import start_ottla
from tests.client.topics import create_topic
from tests.fork_server import REPOSITORY
from tests.pyspark_ottla.rows import write
from tests.pyspark_ottla.sink.written import values
from tests.spark.deployments import Deployment

from ottla.client.wire.cluster import Cluster, TopicPartition
from pyspark_ottla.spark_api import VERSION

EXAMPLE = REPOSITORY / "examples" / "declarative" / "spark-pipeline.yml"
TIMEOUT_S = 800

needs_pipelines = pytest.mark.skipif(
    VERSION < (4, 1), reason="Spark 4.0 has no declarative pipelines"
)


@needs_pipelines
@pytest.mark.timeout(2 * TIMEOUT_S + 40)
def test_two_runs_each_with_what_is_new(tmp_path: Path) -> None:
    with (
        BrokerProcess(tmp_path) as broker,
        Cluster(broker.bootstrap) as cluster,
    ):
        for topic in ("orders", "large-orders"):
            create_topic(cluster, name=topic)
        send(cluster, [order(1, "anna", 30), order(2, "ben", 150)])
        run(broker.bootstrap, tmp_path)
        assert values(cluster, "large-orders") == ['{"id":2,"amount":150.0}']
        send(cluster, [order(3, "anna", 500)])
        run(broker.bootstrap, tmp_path)
        large = ['{"id":2,"amount":150.0}', '{"id":3,"amount":500.0}']
        assert values(cluster, "large-orders") == large
    raw = [(row["id"], row["customer"], row["amount"]) for row in table(tmp_path, "raw_orders")]
    assert sorted(raw) == [(1, "anna", 30.0), (2, "ben", 150.0), (3, "anna", 500.0)]
    rows = table(tmp_path, "per_customer")
    assert {row["customer"]: (row["orders"], row["amount"]) for row in rows} == {
        "anna": (2, 530.0),
        "ben": (1, 150.0),
    }


def order(number: int, customer: str, amount: float) -> bytes:
    return json.dumps({"id": number, "customer": customer, "amount": amount}).encode()


def send(cluster: Cluster, orders: list[bytes]) -> None:
    write(cluster, TopicPartition("orders", 0), *orders)


def run(bootstrap: str, directory: Path) -> None:
    process = start_ottla(
        "pipeline", "declarative", EXAMPLE, "--directory", directory / "state",
        bootstrap=bootstrap, cwd=directory,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, output.decode() + errors.decode()
    assert "Run is COMPLETED" in output.decode()


def table(directory: Path, name: str) -> list[dict[str, object]]:
    files = pyarrow.dataset.dataset(directory / "state" / "warehouse" / name)
    rows: list[dict[str, object]] = files.to_table().to_pylist()
    return rows


@needs_pipelines
def test_two_flows_into_one_target_are_refused(connect: Deployment) -> None:
    from pyspark.pipelines.flow import Flow
    from pyspark.pipelines.source_code_location import SourceCodeLocation
    from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph
    from pyspark.sql.connect.session import SparkSession

    from pyspark_ottla.pipeline.declarative import OneFlowRegistry, ProjectError

    def flow(name: str, target: str, line: int) -> Flow:
        location = SourceCodeLocation("orders.py", line)
        return Flow(name, target, {}, location, lambda: session.range(3))

    session = SparkSession.builder.remote(connect.address).create()
    try:
        graph = create_dataflow_graph(session, None, None, None)  # type: ignore[arg-type]
        registry = OneFlowRegistry(session, graph)
        registry.register_flow(flow("shop", "sales", 3))
        registry.register_flow(flow("shop_copy", "copies", 7))
        refused = r"orders\.py:9: the flows shop and web both write to sales"
        with pytest.raises(ProjectError, match=refused):
            registry.register_flow(flow("web", "sales", 9))
    finally:
        session.client.close()


@needs_pipelines
@pytest.mark.parametrize("text", ["name: [", "name: x\nstorage: y\nlibraries: 7", "- a"])
def test_a_file_that_is_no_pipeline_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    from pyspark_ottla.pipeline.declarative import ProjectError, run_project

    path = tmp_path / "spark-pipeline.yml"
    path.write_text(f"{text}\n")
    with pytest.raises(ProjectError, match=r"spark-pipeline\.yml: "):
        run_project(path, tmp_path, full_refresh_all=False, dry=True, log=tmp_path / "log")


@pytest.mark.skipif(VERSION >= (4, 1), reason="only Spark 4.0 lacks declarative pipelines")
def test_a_spark_without_them_is_named_in_a_sentence(tmp_path: Path) -> None:
    process = start_ottla("pipeline", "declarative", EXAMPLE, cwd=tmp_path)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    sentence = "Spark 4.0 has no declarative pipelines: pip install 'pyspark>=4.1'"
    assert errors.decode().strip().endswith(sentence)
