"""Generates docs/config.md from the declarations: `python -m ottla.node.config_reference`."""

import sys
from collections.abc import Callable, Iterable, Iterator

from ottla.node.config import BROKER_SCHEMA, GROUP_SCHEMA, TOPIC_SCHEMA, environment_name
from ottla.node.kafka_keys import NO_EFFECT
from ottla.protocol.config import ConfigKey

_HEADER = """\
# Configuration

Generated from the declarations in the code by `make docs`; do not edit by hand.

A node reads its configuration from a file (`ottla serve --config FILE`), then from the environment,
then from flags (`--set key=value`); the last one wins. The file is YAML, or Java properties if
its name ends in `.properties`: a `server.properties` of Apache Kafka starts a node. A node refuses
to start with an unknown key or a bad value, and names it.

## Broker

A key marked dynamic can be changed while the broker runs, with `ottla configs alter`.
"""

_NO_EFFECT_HEADER = """
## Broker, without effect

Keys of Apache Kafka 4.3 that have nothing to act on here, such as thread pool sizes. They are
accepted wherever Kafka accepts them, and a starting node lists those that are set in one log line.

"""

_TOPIC_HEADER = """
## Topic

Set them when you create a topic, or later with `ottla configs alter --topic`. A topic that does not
set a key uses the value of the broker key in its row.
"""

_GROUP_HEADER = """
## Group

Set them for a consumer group or share group with `ottla configs alter --group`, or with any Kafka
client that alters configs (resource type GROUP), before or after the group exists. A group that
does not set a key uses the value of the broker key in its row. If the broker has a `min` and a
`max` for a key, the group's value must be within them.
"""


def config_reference() -> str:
    own = [key for key in BROKER_SCHEMA if key.doc != NO_EFFECT]
    others = [key.name for key in BROKER_SCHEMA if key.doc == NO_EFFECT]
    lines = [
        _HEADER,
        *_table("environment", own, lambda key: f"`{environment_name(key.name)}`"),
        _NO_EFFECT_HEADER + ", ".join(f"`{name}`" for name in sorted(others)) + ".",
        _TOPIC_HEADER,
        *_table("broker key", TOPIC_SCHEMA, lambda key: f"`{key.synonym}`" if key.synonym else ""),
        _GROUP_HEADER,
        *_table("broker key", GROUP_SCHEMA, lambda key: f"`{key.synonym}`"),
    ]
    return "\n".join(lines) + "\n"


def _table(
    fourth: str, keys: Iterable[ConfigKey[object]], value: Callable[[ConfigKey[object]], str]
) -> Iterator[str]:
    """`value` returns what the fourth column has for a key."""
    yield f"| key | type | default | {fourth} | description |"
    yield "| --- | --- | --- | --- | --- |"
    for key in sorted(keys, key=lambda key: key.name):
        default = key.format(key.default)
        kind = key.type.name.lower() + (", dynamic" if key.dynamic else "")
        cells = (
            f"`{key.name}`",
            kind,
            f"`{default}`" if default else "",
            value(key),
            key.doc.replace("|", "\\|"),
        )
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.stdout.write(config_reference())
