"""Alerts and dashboards: generated from their source, and valid for Prometheus itself."""

import contextlib
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from deploy.monitoring.alerts import ALERTS
from deploy.monitoring.dashboards.catalogue import DASHBOARDS
from deploy.monitoring.dashboards.panels import Panel
from deploy.monitoring.generate import DIRECTORY, files
from tests.ports import ReservedPort
from tests.pyspark_ottla.pipeline.reports import report

from ottla.cli.examples import EXAMPLES
from ottla.client import ShareConsumer
from ottla.node.metrics.page import SECTIONS
from ottla.testing.embedded.cluster import EmbeddedCluster
from pyspark_ottla.pipeline.metrics import MetricsServer
from pyspark_ottla.pipeline.progress import Progress

RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks.md"
CLI = Path(__file__).parents[2] / "docs" / "cli.md"
PATIENCE_S = 90.0
# Shown only in trouble, which the test does not cause.
MAY_BE_EMPTY = {"certificates", "errors", "refusals"}

PANELS = [panel for dashboard in DASHBOARDS for panel in dashboard.panels]


def test_generated_files_are_up_to_date() -> None:
    generated = files()
    for name, text in generated.items():
        assert (DIRECTORY / name).read_text() == text, "run `make monitoring`"
    there = {str(path.relative_to(DIRECTORY)) for path in DIRECTORY.glob("*/*.*")}
    assert {name for name in there if name.endswith((".json", ".yml"))} == set(generated)


def test_queries_ask_for_metrics_that_exist() -> None:
    families = [family for section in SECTIONS for family in section.families]
    known = {family.name for family in families}
    known |= {f"{family.name}_bucket" for family in families if family.kind == "histogram"}
    asked = [query for panel in PANELS for query in panel.queries.values()]
    asked += [alert.expression for alert in ALERTS]
    for query in asked:
        for name in re.findall(r"\b(?:ottla|kafka)_\w+", query):
            assert name in known or name.startswith("ottla_pipeline_"), (name, query)


def test_every_panel_is_described_and_linked_to_a_runbook() -> None:
    names = {alert.name for alert in ALERTS}
    assert all(panel.text and panel.alert in {"", *names} for panel in PANELS)
    assert {panel.alert for panel in PANELS} - {""} >= names - {"OttlaDirectoryOffline"}


def sections(document: Path) -> dict[str, str]:
    pattern = r"^## ([\w -]+)\n(.*?)(?=^## |\Z)"
    return dict(re.findall(pattern, document.read_text(), re.MULTILINE | re.DOTALL))


def test_every_alert_has_a_runbook() -> None:
    runbooks = sections(RUNBOOKS)
    assert list(runbooks) == [alert.name for alert in ALERTS]
    for section in runbooks.values():
        assert all(f"**{word}.**" in section for word in ("Meaning", "Check", "Fix"))


def test_commands_of_runbooks_exist() -> None:
    documented = sections(CLI)
    for command in re.findall(r"`ottla ([^`]+)`", RUNBOOKS.read_text()):
        words = re.findall(r"^[a-z-]+(?: [a-z-]+)?", command)[0]
        name = words if words in EXAMPLES else words.split()[0]
        assert name in EXAMPLES, command
        for option in re.findall(r"--[a-z-]+", command):
            assert option in documented[f"ottla {name}"] or option == "--bootstrap-server", command


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed (Debian's package prometheus has it)")
    return found


def test_rules_are_valid(promtool: str) -> None:
    rules = DIRECTORY / "prometheus" / "rules.yml"
    subprocess.run([promtool, "check", "rules", rules], check=True, capture_output=True)


def test_every_alert_fires(promtool: str) -> None:
    tests = DIRECTORY / "prometheus" / "rules-test.yml"
    ended = subprocess.run([promtool, "test", "rules", tests], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    config = {
        "metrics.port": "0",
        "metrics.host": "127.0.0.1",
        "metrics.lag.interval.ms": "200",
        "probe.interval.ms": "500",
        "flush.policy": "ack",
    }
    with EmbeddedCluster(2, config=config, storage="directory") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def traffic(cluster: EmbeddedCluster) -> Iterator[None]:
    """Long-running consumers of a group and of a share group."""
    topic = cluster.topic("orders")
    producer = Producer(cluster.client_config)
    for number in range(10):
        producer.produce(topic, str(number))
    assert producer.flush(60) == 0
    settings = {**cluster.client_config, "group.id": "readers", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    while consumer.poll(0.1) is None:
        pass
    consumer.commit(asynchronous=False)
    servers = cluster.bootstrap_servers
    with ShareConsumer(group_id="workers", bootstrap_servers=servers) as workers:
        workers.subscribe(topic)
        while not workers.poll(0.5):  # Its group starts at the end.
            producer.produce(topic, b"work")
            producer.flush(60)
        yield
    consumer.close()


@pytest.fixture(scope="module")
def prometheus(
    cluster: EmbeddedCluster, traffic: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a Prometheus that scrapes the nodes and a pipeline."""
    found = shutil.which("prometheus")
    if found is None:
        pytest.skip("prometheus is not installed (Debian's package prometheus)")
    progress = Progress("orders")
    progress.add("out", "topic out")
    progress.take("out", report())
    directory, port = tmp_path_factory.mktemp("prometheus"), ReservedPort()
    pipeline = MetricsServer("127.0.0.1", 0, progress)
    nodes = [cluster._node(each).node.metrics_port for each in cluster.node_ids]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(DIRECTORY / "prometheus" / "rules.yml")],
        "scrape_configs": [
            {
                "job_name": job,
                "static_configs": [{"targets": [f"127.0.0.1:{each}" for each in ports]}],
            }
            for job, ports in (("ottla", nodes), ("pipelines", [pipeline.port]))
        ],
    }
    (directory / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML.
    address = f"127.0.0.1:{port}"
    process = subprocess.Popen(
        [
            found,
            f"--config.file={directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address={address}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_until_ready(f"http://{address}")
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(60)
        pipeline.close()


def _wait_until_ready(address: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(OSError):  # It is starting; HTTPError is an OSError.
            urllib.request.urlopen(f"{address}/-/ready", timeout=60).close()
            return
        assert time.monotonic() < deadline, "prometheus does not start"
        time.sleep(0.1)


def ask(prometheus: str, path: str, **parameters: str) -> Any:
    url = f"{prometheus}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=60) as response:
        return json.load(response)["data"]


def results(prometheus: str, query: str) -> Any:
    """The result of a query over two scrapes, with all variables open."""
    query = re.sub(r"\$(topic|group)\b", ".*", query.replace("$interval", "1m"))
    return ask(prometheus, "query", query=query)["result"]


@pytest.mark.process
def test_dashboards_show_a_running_cluster(prometheus: str) -> None:
    """Each query finds something, once Prometheus has scraped twice."""
    deadline = time.monotonic() + PATIENCE_S
    waiting = [(panel, query) for panel in PANELS for query in panel.queries.values()]
    while waiting:
        waiting = [each for each in waiting if _is_empty(prometheus, *each)]
        assert time.monotonic() < deadline, waiting


def _is_empty(prometheus: str, panel: Panel, query: str) -> bool:
    try:
        found = results(prometheus, query)
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
            return True  # It is starting.
        raise AssertionError(f"{query}: {error.read().decode()}") from error
    except OSError:
        return True  # It is starting.
    return not found and panel.needs not in MAY_BE_EMPTY


@pytest.mark.process
def test_a_healthy_cluster_is_left_alone(prometheus: str) -> None:
    """No alerts except those that a slow machine may cause."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        groups = ask(prometheus, "rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        if rules and all(rule["health"] == "ok" for rule in rules):
            break
        assert time.monotonic() < deadline, rules
        time.sleep(0.1)
    firing = {rule["name"] for rule in rules if rule["state"] == "firing"}
    assert firing <= {"OttlaEventLoopLate", "OttlaSlowFlushes", "OttlaProbeFailing", "OttlaDiskLow"}
