"""`ottla configs alter`: set, delete, append to and subtract from configuration values."""

from collections.abc import Iterable, Sequence

from kio.schema.incremental_alter_configs.v1.request import AlterableConfig
from kio.static.primitive import i8

from ottla.cli.assignments import parse_pairs
from ottla.cli.broker_call import BrokerCall, bootstrap_broker, check
from ottla.cli.configs.describe import described
from ottla.cli.configs.resource import NO_SUBJECT, Subject
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import UsageError
from ottla.cli.output import print_outcome
from ottla.cli.parameters import AsJson
from ottla.client.wire.configs import APPEND, BROKER, DELETE, SET, SUBTRACT, change_request


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
    resource = kind, _ = subject.resource()
    assigned = parse_pairs("--set", set_ or [])
    changes = (
        *_changes(SET, assigned),
        *_changes(DELETE, [(key, None) for key in delete or []]),
        *_changes(APPEND, parse_pairs("--append", append or [])),
        *_changes(SUBTRACT, parse_pairs("--subtract", subtract or [])),
    )
    if not changes:
        raise UsageError("nothing to change; give --set, --delete, --append or --subtract")
    if kind == BROKER:
        _validate_known(key for key, _ in assigned)
    with bootstrap_broker(connection) as broker:
        if subject.broker is not None:
            broker.node(subject.broker)
        if kind != BROKER and delete:
            _validate_deleted(broker, subject, delete)
        (answer,) = broker.call(change_request({resource: changes})).responses
    check(answer.error_code, str(subject), answer.error_message)
    keys = sorted({change.name for change in changes})
    text = f"altered {', '.join(keys)} of {subject}"
    print_outcome({"altered": keys}, text, as_json=as_json)


def _validate_known(keys: Iterable[str]) -> None:
    """A broker takes any key, as Kafka does; who types one here means one that there is."""
    from ottla.node.config import BROKER_SCHEMA
    from ottla.protocol.errors import ApiError

    for key in keys:
        try:
            BROKER_SCHEMA[key]
        except ApiError as error:
            raise UsageError(str(error.message)) from None


def _validate_deleted(broker: BrokerCall, subject: Subject, keys: Sequence[str]) -> None:
    """A broker lets any key be deleted, as Kafka does. Internal ones are listed only when set."""
    from ottla.storage.config import TOPIC_KEYS

    known = set(described(broker, subject))
    if subject.topic is not None:
        known.update(key.name for key in TOPIC_KEYS if key.internal)
    for key in keys:
        if key not in known:
            raise UsageError(f"unknown config key {key!r}")


def _changes(operation: i8, pairs: Sequence[tuple[str, str | None]]) -> list[AlterableConfig]:
    return [
        AlterableConfig(name=key, config_operation=operation, value=value) for key, value in pairs
    ]
