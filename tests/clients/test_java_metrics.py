"""Java clients push their metrics to a node (KIP-714), if Kafka is available."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.broker_process import START_TIMEOUT_S
from tests.cli.command import start_ottla
from tests.clients.authorization.brokers import LIBRARIES
from tests.node import metrics_pages
from tests.ports import HOST, ReservedPort

from ottla.testing import EmbeddedBroker

PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not (LIBRARIES / "resolved").exists(),
        reason="Apache Kafka is not in the benchmarks' cache; `make bench` gets it",
    ),
]


def console(stack: ExitStack, program: str, client_id: str, *words: str) -> None:
    """Runs with an endless stdin until the stack is closed."""
    java = ("java", "-XX:TieredStopAtLevel=1", "-cp", f"{LIBRARIES}/libs/*", program)
    properties = ("enable.metrics.push=true", f"client.id={client_id}")
    options = [word for each in properties for word in ("--command-property", each)]
    process = subprocess.Popen(
        [*java, *options, "--topic", "orders", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.enter_context(process)
    stack.callback(process.kill)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def clients_on(url: str) -> set[str]:
    """The metrics they push, by client id."""
    found = metrics_pages.scrape(url)
    return {
        f"{client} {part}"
        for key in found
        if key[0] in ("ottla_client_gauge", "ottla_client_counter_total")
        for client in ("java-writer", "java-reader")
        for part in ("org.apache.kafka.producer", "org.apache.kafka.consumer")
        if client in key and any(value.startswith(part) for value in key)
    }


def run_ottla(servers: str, *words: str) -> None:
    process = start_ottla(*words, bootstrap=servers)
    _, errors = process.communicate(timeout=START_TIMEOUT_S)
    assert process.returncode == 0, errors


def test_metrics_of_a_producer_and_a_consumer_are_on_the_page(stack: ExitStack) -> None:
    port = ReservedPort()
    config = {"metrics.host": HOST, "metrics.port": str(port)}
    servers = stack.enter_context(EmbeddedBroker(config=config)).bootstrap_servers
    run_ottla(servers, "topics", "create", "orders")
    settings = ("--set", "metrics=*", "--set", "interval.ms=1000")
    run_ottla(servers, "configs", "alter", "--client-metrics", "all", *settings)
    address = ("--bootstrap-server", servers)
    console(stack, PRODUCER, "java-writer", *address)
    console(stack, CONSUMER, "java-reader", *address, "--group", "readers")
    wanted = {"java-writer org.apache.kafka.producer", "java-reader org.apache.kafka.consumer"}
    deadline = time.monotonic() + START_TIMEOUT_S
    while not wanted <= (found := clients_on(f"http://{HOST}:{port}/metrics")):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
