"""The options of sources and sinks: which there are, and their values, which are text.

Spark passes their names in lower case, so they are looked up that way.
"""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ottla.client.wire.cluster import TopicPartition

# Options of Spark's Kafka source that do not apply here: by lower-case prefix, with the message.
_REFUSED = {
    "kafka.sasl.": "of SASL there are kafka.sasl.mechanism, jaas.config, username and password",
    "kafka.ssl.": "of TLS there are kafka.ssl.truststore., keystore. and key. in PEM",
    "kafka.auto.offset.reset": "give startingOffsets instead; a restart resumes where it stopped",
    "kafka.enable.auto.commit": "offsets are in the checkpoint; commitGroup shows them to others",
    "kafka.group.id": "the source is in no group; commitGroup is the group to commit offsets for",
    "groupidprefix": "the source is in no group; commitGroup is the group to commit offsets for",
    "kafka.key.deserializer": "keys are bytes",
    "kafka.value.deserializer": "values are bytes; valueFormat is for json, avro and string",
    "kafka.interceptor.classes": "this source has no Java classes",
    "kafka.": "this setting of Java's client has no meaning here",
    "minoffsetspertrigger": "the source has no lower limit; leave it out",
    "maxtriggerdelay": "the source has no lower limit of offsets; leave it out",
    "kafkaconsumer.": "kafka.default.api.timeout.ms is how long the source tries",
    "fetchoffset.": "kafka.default.api.timeout.ms is how long the source tries",
}
_OF_A_TABLE = "provider"  # Added by Spark to the options of a catalog table.


class OptionError(ValueError):
    """An option is missing, unknown, wrong, or in conflict with another."""


class OptionValues:
    """Each method returns None for a missing option, and raises OptionError for a bad value."""

    def __init__(self, options: Mapping[str, str], known: Iterable[str]) -> None:
        """Raises OptionError for a name that is not a known one, in any case."""
        _validate_names(options, known)
        self._values = {name.lower(): value for name, value in options.items()}

    def has(self, name: str) -> bool:
        return name.lower() in self._values

    def is_empty(self, name: str) -> bool:
        """For options in which the empty text has a meaning."""
        return self._values.get(name.lower()) == ""

    def text(self, name: str) -> str | None:
        value = self._values.get(name.lower())
        if value is not None and not value.strip():
            raise OptionError(f"option {name} is empty")
        return value

    def one_of(self, names: Sequence[str]) -> str | None:
        """The given one of several mutually exclusive options."""
        given = [name for name in names if self.text(name) is not None]
        if len(given) > 1:
            raise OptionError(f"options {' and '.join(given)} exclude each other")
        return given[0] if given else None

    def flag(self, name: str, default: bool) -> bool:
        value = self.choice(name, ("true", "false"))
        return default if value is None else value == "true"

    def choice(self, name: str, choices: Iterable[str]) -> str | None:
        """Returned in lower case."""
        value = self.text(name)
        if value is None:
            return None
        if value.lower() not in choices:
            raise OptionError(f"option {name} is {value!r} and not one of {', '.join(choices)}")
        return value.lower()

    def number(self, name: str) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            return int(value)
        except ValueError:
            raise OptionError(f"option {name} is {value!r} and not a number") from None

    def positive(self, name: str) -> int | None:
        value = self.number(name)
        if value is not None and value < 1:
            raise OptionError(f"option {name} is {value} and must be at least 1")
        return value

    def offsets(self, name: str) -> dict[TopicPartition, int]:
        """`{"topic": {"0": 23, "1": -2}}`."""
        offsets = {}
        for topic, numbers in self._object(name).items():
            if topic.startswith("@"):
                continue  # From an offset copied out of a query's progress.
            if not isinstance(numbers, dict):
                raise self._not_like(name, '{"topic": {"0": 23}}')
            for partition, number in numbers.items():
                if not partition.isdecimal() or type(number) is not int or number < -2:
                    raise self._not_like(name, '{"topic": {"0": 23}}')
                offsets[TopicPartition(topic, int(partition))] = number
        return offsets

    def topic_partitions(self, name: str) -> list[TopicPartition]:
        """`{"topic": [0, 1]}`."""
        found = []
        for topic, partitions in self._object(name).items():
            if not isinstance(partitions, list):
                raise self._not_like(name, '{"topic": [0, 1]}')
            for partition in partitions:
                if type(partition) is not int or partition < 0:
                    raise self._not_like(name, '{"topic": [0, 1]}')
                found.append(TopicPartition(topic, partition))
        return found

    def _object(self, name: str) -> dict[str, Any]:
        try:
            value = json.loads(self.text(name) or "")
        except ValueError as error:
            raise OptionError(f"option {name} is not JSON: {error}") from None
        if not isinstance(value, dict) or not value:
            raise OptionError(f"option {name} is not a JSON object with topics")
        return value

    def _not_like(self, name: str, example: str) -> OptionError:
        return OptionError(f"option {name} is {self.text(name)} and not like {example}")


def _validate_names(options: Mapping[str, str], known: Iterable[str]) -> None:
    by_lower = {name.lower(): name for name in known}
    lower = [name.lower() for name in options]
    if _OF_A_TABLE in lower:
        raise OptionError(
            "Spark does not hand the options of a table on to a source in Python;"
            " CREATE TEMPORARY VIEW ... USING ottla OPTIONS (...) is read with its options"
        )
    for given in lower:
        if given not in by_lower:
            raise OptionError(_unknown(given, by_lower))


def _unknown(given: str, by_lower: Mapping[str, str]) -> str:
    nearest = difflib.get_close_matches(given, by_lower, n=1, cutoff=0.75)
    if nearest:
        return f"there is no option {given}; did you mean {by_lower[nearest[0]]}?"
    for beginning, reason in _REFUSED.items():
        if given.startswith(beginning):
            return f"option {given}: {reason}"
    return f"there is no option {given}; there are {', '.join(sorted(by_lower.values()))}"
