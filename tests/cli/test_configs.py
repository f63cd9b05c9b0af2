from collections.abc import Iterator

import pytest
from tests.cli.conftest import Ottla

pytestmark = pytest.mark.process


@pytest.fixture
def topic(ottla: Ottla, bootstrap: str) -> Iterator[str]:
    ottla("topics", "create", "cli-configs", bootstrap=bootstrap)
    yield "cli-configs"
    ottla("topics", "delete", "cli-configs", bootstrap=bootstrap)


def test_a_topic_with_defaults(ottla: Ottla, bootstrap: str, topic: str) -> None:
    outcome = ottla("configs", "describe", "--topic", topic, "--all", "--json", bootstrap=bootstrap)
    values = {row["key"]: row["value"] for row in outcome.json}
    assert values["cleanup.policy"] == "delete"
    assert values["retention.ms"] == "604800000"


def test_what_was_set_is_shown_with_its_source(ottla: Ottla, bootstrap: str, topic: str) -> None:
    altered = ottla(
        "configs", "alter", "--topic", topic, "--set", "retention.ms=1000", bootstrap=bootstrap
    )
    assert altered == (0, f"altered retention.ms of topic {topic}\n", "")
    lines = ottla("configs", "describe", "--topic", topic, bootstrap=bootstrap).output.splitlines()
    assert lines[0].split() == ["KEY", "VALUE", "SOURCE"]
    assert ["retention.ms", "1000", "dynamic_topic_config"] in [line.split() for line in lines]


def test_all_four_ways_to_alter(ottla: Ottla, bootstrap: str, topic: str) -> None:
    def alter(*arguments: str) -> None:
        outcome = ottla("configs", "alter", "--topic", topic, *arguments, bootstrap=bootstrap)
        assert outcome.exit_code == 0, outcome.errors

    alter("--set", "retention.ms=1000", "--append", "cleanup.policy=compact")
    alter("--delete", "retention.ms", "--subtract", "cleanup.policy=delete")
    rows = ottla("configs", "describe", "--topic", topic, "--json", bootstrap=bootstrap).json
    values = {row["key"]: row["value"] for row in rows}
    assert values["cleanup.policy"] == "compact"
    assert values.get("retention.ms") != "1000"


@pytest.mark.parametrize("assignment", ["retention.ms=soon", "no.such.key=1"])
def test_a_bad_value_is_refused(ottla: Ottla, bootstrap: str, topic: str, assignment: str) -> None:
    outcome = ottla("configs", "alter", "--topic", topic, "--set", assignment, bootstrap=bootstrap)
    assert (outcome.exit_code, outcome.output) == (1, "")
    assert assignment.split("=", maxsplit=1)[0] in outcome.errors


@pytest.mark.parametrize("subject", ["--topic", "--group", "--client-metrics"])
def test_a_key_that_nobody_knows_is_not_deleted(
    ottla: Ottla, bootstrap: str, topic: str, subject: str
) -> None:
    outcome = ottla(
        "configs", "alter", subject, topic, "--delete", "retention", bootstrap=bootstrap
    )
    assert (outcome.exit_code, outcome.output) == (2, "")
    assert "unknown config key 'retention'" in outcome.errors


def test_an_internal_key_may_be_deleted_when_it_is_not_set(
    ottla: Ottla, bootstrap: str, topic: str
) -> None:
    delete = ("configs", "alter", "--topic", topic, "--delete", "internal.segment.bytes")
    altered = ottla(*delete, bootstrap=bootstrap)
    assert altered == (0, f"altered internal.segment.bytes of topic {topic}\n", "")


def test_the_configuration_of_all_brokers(ottla: Ottla, bootstrap: str) -> None:
    everyone = ("--all-brokers", "--set", "num.partitions=3")
    altered = ottla("configs", "alter", *everyone, bootstrap=bootstrap)
    assert altered == (0, "altered num.partitions of all brokers\n", "")
    rows = ottla("configs", "describe", "--all-brokers", "--json", bootstrap=bootstrap).json
    assert [(row["key"], row["value"], row["source"]) for row in rows] == [
        ("num.partitions", "3", "dynamic_default_broker_config")
    ]
    deleted = ("--all-brokers", "--delete", "num.partitions")
    assert ottla("configs", "alter", *deleted, bootstrap=bootstrap).exit_code == 0
    described = ottla("configs", "describe", "--all-brokers", bootstrap=bootstrap)
    assert described.output == "only defaults for all brokers; --all shows them\n"
    refused = ottla("configs", "alter", "--all-brokers", "--set", "node.id=1", bootstrap=bootstrap)
    assert (refused.exit_code, refused.output) == (1, "")
    assert "all brokers" in refused.errors


@pytest.mark.parametrize("subject", [(), ("--topic", "orders", "--all-brokers")])
def test_it_must_be_said_whose_configuration_is_meant(
    ottla: Ottla, bootstrap: str, subject: tuple[str, ...]
) -> None:
    outcome = ottla("configs", "describe", *subject, bootstrap=bootstrap)
    assert (
        "give one of --topic NAME, --group ID, --broker ID, --client-metrics NAME" in outcome.errors
    )


def test_the_configuration_of_a_broker(ottla: Ottla, bootstrap: str) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap})
    [broker_id] = admin.list_topics(timeout=120).brokers
    outcome = ottla(
        "configs", "describe", "--broker", str(broker_id), "--all", "--json", bootstrap=bootstrap
    )
    values = {row["key"]: row["value"] for row in outcome.json}
    assert values["num.partitions"] == "1"


def test_the_configuration_of_a_group(ottla: Ottla, bootstrap: str) -> None:
    group = ("--group", "cli-configs")
    altered = ottla(
        "configs", "alter", *group, "--set", "share.record.order=key", bootstrap=bootstrap
    )
    assert altered == (0, "altered share.record.order of group cli-configs\n", "")
    rows = ottla("configs", "describe", *group, "--json", bootstrap=bootstrap).json
    assert [(row["key"], row["value"]) for row in rows] == [("share.record.order", "key")]


def test_a_subscription_to_the_metrics_of_clients(ottla: Ottla, bootstrap: str) -> None:
    name = ("--client-metrics", "cli-orders")
    changes = ("--set", "metrics=producer.", "--append", "match=client_id=orders-.*")
    altered = ottla("configs", "alter", *name, *changes, bootstrap=bootstrap)
    assert altered == (0, "altered match, metrics of client metrics cli-orders\n", "")
    described = ottla("configs", "describe", *name, "--json", bootstrap=bootstrap).json
    assert [(row["key"], row["value"], row["source"]) for row in described] == [
        ("match", "client_id=orders-.*", "dynamic_client_metrics_config"),
        ("metrics", "producer.", "dynamic_client_metrics_config"),
    ]
    deleted = ("--delete", "metrics", "--delete", "match")
    assert ottla("configs", "alter", *name, *deleted, bootstrap=bootstrap).exit_code == 0
    again = ottla("configs", "describe", *name, bootstrap=bootstrap)
    assert again == (0, "only defaults for client metrics cli-orders; --all shows them\n", "")
