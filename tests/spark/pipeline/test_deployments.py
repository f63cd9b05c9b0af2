"""The same file on a cluster of processes and through Spark Connect; other tests run locally."""

import json
import subprocess
import sys
from pathlib import Path

import deltalake
import pytest
from tests.spark.deployments import Deployment, base_environment
from tests.spark.pipeline.conftest import Workshop

from ottla.client.wire.cluster import Cluster

PIPELINE = """\
name: "{name}"
sources:
  orders: {topic: "{name}-orders", format: json, schema: "customer string, amount int"}
steps:
  doubled: {python: "my_steps:doubled", from: orders}
  totals: {sql: "select customer, sum(amount) as total from doubled group by customer"}
sinks:
  copy: {from: doubled, topic: "{name}-copy"}
  table: {from: totals, delta: totals, key: customer, mode: update}
"""
STEPS = """
from pyspark.sql.functions import udf

from my_helper import twice

def doubled(orders):
    return orders.select("customer", udf(twice, "int")("amount").alias("amount"))
"""
TIMEOUT_S = 800


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("deployment", ["standalone", "connect"], indirect=True)
def test_topics_functions_and_tables(
    deployment: Deployment, bootstrap: str, cluster: Cluster, tmp_path: Path
) -> None:
    workshop = Workshop(None, bootstrap, cluster, tmp_path)  # Spark runs elsewhere.
    (workshop.directory / "my_steps.py").write_text(STEPS)
    (workshop.directory / "my_helper.py").write_text("def twice(number): return 2 * number\n")
    workshop.topic("orders")
    path = workshop.load(PIPELINE).path
    orders = [("anna", 1), ("ben", 5), ("anna", 2)]
    workshop.send("orders", [{"customer": name, "amount": amount} for name, amount in orders])
    assert run_once(deployment, path, workshop.bootstrap) == {"copy": 3, "table": 2}
    assert [row["amount"] for row in workshop.objects("copy")] == [2, 4, 10]
    table = deltalake.DeltaTable(str(workshop.directory / "totals")).to_pyarrow_table()
    assert {row["customer"]: row["total"] for row in table.to_pylist()} == {"anna": 6, "ben": 10}


def run_once(deployment: Deployment, path: Path, bootstrap: str) -> dict[str, int]:
    """The number of rows given to each sink."""
    where = "--remote" if deployment.address.startswith("sc:") else "--master"
    command = [sys.executable, "-m", "ottla", "pipeline", "run", str(path), "--once", "--json"]
    done = subprocess.run(
        [*command, where, deployment.address, "--bootstrap-server", bootstrap],
        env=base_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert not done.returncode, done.stderr
    return {sink["sink"]: sink["rows_out"] for sink in json.loads(done.stdout)["sinks"]}
