"""`ottla configs describe`: configuration values and where they come from."""

from typing import Any

from confluent_kafka.admin import ConfigEntry, ConfigSource

from ottla.cli.configs.all_brokers import (
    CLIENT_METRICS_SOURCE,
    describe_all_brokers,
    describe_client_metrics,
    validate_running,
)
from ottla.cli.configs.resource import NO_SUBJECT, Subject
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson, Flag


def describe(
    *,
    subject: Subject = NO_SUBJECT,
    all_: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Show configuration values.

    Args:
        all_: Also show keys with their default value.
    """
    subject.validate()
    if subject.all_brokers:
        entries = describe_all_brokers(connection)
    elif subject.client_metrics is not None:
        entries = describe_client_metrics(connection, subject.client_metrics)
    else:
        if subject.broker is not None:
            validate_running(connection, subject.broker)
        resource = subject.resource()
        admin = connection.admin()
        entries = connection.result(admin.describe_configs([resource])[resource])
    rows = [_row(entry) for _, entry in sorted(entries.items()) if all_ or not entry.is_default]
    if as_json:
        print_json(rows)
    elif rows:
        print_rows(("key", "value", "source"), rows)
    else:
        print_line(f"only defaults for {subject}; --all shows them")


def _row(entry: ConfigEntry) -> dict[str, object]:
    return {
        "key": entry.name,
        "value": "(hidden)" if entry.is_sensitive else entry.value,
        "source": _source_name(entry.source),
        "read_only": entry.is_read_only,
    }


def _source_name(source: Any) -> str:
    if source == CLIENT_METRICS_SOURCE:
        return "dynamic_client_metrics_config"
    return str(ConfigSource(source).name.lower())
