"""`ottla configs alter`: set, delete, append to and subtract from configuration values."""

from collections.abc import Container, Sequence

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from ottla.cli.assignments import parse_pairs
from ottla.cli.configs.all_brokers import (
    alter_brokers,
    alter_client_metrics,
    describe_client_metrics,
)
from ottla.cli.configs.resource import NO_SUBJECT, Subject
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import UsageError
from ottla.cli.output import print_json, print_line
from ottla.cli.parameters import AsJson


def alter(
    *,
    subject: Subject = NO_SUBJECT,
    set_: list[str] | None = None,
    delete: list[str] | None = None,
    append: list[str] | None = None,
    subtract: list[str] | None = None,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Change configuration values.

    Args:
        set_: KEY=VALUE to set; may be repeated.
        delete: KEY to reset to its default; may be repeated.
        append: KEY=VALUE to add to a list; may be repeated.
        subtract: KEY=VALUE to remove from a list; may be repeated.
    """
    subject.validate()
    entries = [
        *_entries(AlterConfigOpType.SET, parse_pairs("--set", set_ or [])),
        *_entries(AlterConfigOpType.DELETE, [(key, None) for key in delete or []]),
        *_entries(AlterConfigOpType.APPEND, parse_pairs("--append", append or [])),
        *_entries(AlterConfigOpType.SUBTRACT, parse_pairs("--subtract", subtract or [])),
    ]
    if not entries:
        raise UsageError("nothing to change; give --set, --delete, --append or --subtract")
    if subject.client_metrics is not None:
        if delete:
            _validate_deleted(delete, describe_client_metrics(connection, subject.client_metrics))
        alter_client_metrics(connection, subject.client_metrics, entries)
    elif subject.topic is None and subject.group is None:
        _validate_known(parse_pairs("--set", set_ or []))
        alter_brokers(connection, subject.broker, entries)
    else:
        if delete:
            _validate_deleted(delete, _known(connection, subject.resource()))
        _alter(connection, subject.resource(), entries)
    keys = sorted({entry.name for entry in entries})
    if as_json:
        print_json({"altered": keys})
    else:
        print_line(f"altered {', '.join(keys)} of {subject}")


def _validate_known(pairs: Sequence[tuple[str, str | None]]) -> None:
    """A broker takes any key, as Kafka does; who types one here means one that there is."""
    from ottla.node.config import BROKER_SCHEMA
    from ottla.protocol.errors import ApiError

    for key, _ in pairs:
        try:
            BROKER_SCHEMA[key]
        except ApiError as error:
            raise UsageError(str(error.message)) from None


def _validate_deleted(keys: Sequence[str], known: Container[str]) -> None:
    """A broker lets any key be deleted, as Kafka does."""
    for key in keys:
        if key not in known:
            raise UsageError(f"unknown config key {key!r}")


def _known(connection: Connection, resource: ConfigResource) -> set[str]:
    """Internal keys are listed only while they are set."""
    from ottla.storage.config import TOPIC_KEYS

    admin = connection.admin()
    described: dict[str, ConfigEntry] = connection.result(
        admin.describe_configs([resource])[resource]
    )
    is_topic = resource.restype is ResourceType.TOPIC
    return {*described, *(key.name for key in TOPIC_KEYS if key.internal and is_topic)}


def _alter(
    connection: Connection, resource: ConfigResource, entries: Sequence[ConfigEntry]
) -> None:
    for entry in entries:
        resource.add_incremental_config(entry)
    admin = connection.admin()
    connection.result(admin.incremental_alter_configs([resource])[resource])


def _entries(
    operation: AlterConfigOpType, pairs: Sequence[tuple[str, str | None]]
) -> list[ConfigEntry]:
    return [ConfigEntry(key, value, incremental_operation=operation) for key, value in pairs]
