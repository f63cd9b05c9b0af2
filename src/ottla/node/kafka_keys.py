"""Every broker key of Apache Kafka 4.3, so that its configuration files and tools work here.

`kafka_keys.tsv` was generated from that release: name, type, default (`\\N` for none) and the scope
in which the key can be altered at run time (`-` none, `cluster`, `broker` or `listener`);
`internal` ones cannot be altered and are shown only where they are set. A key that no package
declares is accepted and has no effect.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.protocol.config import ConfigKey, ConfigType

_NULL: Final = "\\N"
NO_EFFECT: Final = "Apache Kafka's. Accepted, and without effect here."


class KafkaKey(NamedTuple):
    name: str
    type: ConfigType
    default: str | None
    scope: str

    @property
    def dynamic(self) -> bool:
        return self.scope not in ("-", "internal")

    @property
    def internal(self) -> bool:
        return self.scope == "internal"


def read_table() -> dict[str, KafkaKey]:
    text = Path(__file__).with_name("kafka_keys.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines())
    return {
        name: KafkaKey(name, ConfigType[kind.upper()], None if default == _NULL else default, scope)
        for name, kind, default, scope in rows
    }


def with_kafka_keys(declared: Iterable[ConfigKey[Any]]) -> tuple[ConfigKey[Any], ...]:
    """The declared keys, and those that only Kafka has."""
    table = read_table()
    own = [_as_kafka_shows(key, table.get(key.name)) for key in declared]
    names = {key.name for key in own}
    return (*own, *(_without_effect(row) for row in table.values() if row.name not in names))


def _as_kafka_shows(key: ConfigKey[Any], row: KafkaKey | None) -> ConfigKey[Any]:
    if row is None:
        return key
    has_default = row.default is not None or key.default not in (None, "", ())
    return replace(_with_scope(key, row), shows_default=has_default)


def _without_effect(row: KafkaKey) -> ConfigKey[Any]:
    key: ConfigKey[Any] = ConfigKey(row.name, row.type, None, NO_EFFECT)
    return replace(
        _with_scope(key, row),
        default=None if row.default is None else key.parse(row.default),
        dynamic=row.dynamic,
        per_listener=row.name.startswith(("ssl.", "sasl.")),
        has_effect=False,
    )


def _with_scope(key: ConfigKey[Any], row: KafkaKey) -> ConfigKey[Any]:
    return replace(
        key,
        broker_only=row.scope in ("broker", "listener"),
        listener_only=row.scope == "listener",
        internal=row.internal,
    )
