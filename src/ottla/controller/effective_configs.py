"""Which value of a config key holds, and where it comes from.

From the strongest to the weakest: the topic's or group's own value, the broker's dynamic value, the
dynamic value for all brokers, the broker's file, the default. Keys of topics and groups take the
value of their broker synonym in all but the first and the last.
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.controller.image import MetadataImage
from ottla.protocol.config import ConfigKey, ConfigSchema, ConfigValues
from ottla.protocol.errors import ApiError

Values = Mapping[str, object]  # Parsed values by the name of the key.


class ConfigSource(enum.IntEnum):
    """The numbers are those of DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    key: ConfigKey[Any]
    synonyms: tuple[ConfigSynonym, ...]  # The strongest first; it is the one that holds.

    @property
    def value(self) -> str | None:
        return self.synonyms[0].value

    @property
    def source(self) -> ConfigSource:
        return self.synonyms[0].source


_NO_KEYS = ConfigSchema(())


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """What is fixed for the life of the process."""

    topic_schema: ConfigSchema
    broker_schema: ConfigSchema
    static: Values  # The broker's file, environment and flags.
    topic_defaults: Callable[[Values], Values]  # What broker values say about topic keys.
    group_schema: ConfigSchema = _NO_KEYS
    # Values of a group and of the broker; raises ApiError when the group cannot have them.
    validate_group: Callable[[ConfigValues, ConfigValues], None] = lambda _group, _broker: None


class EffectiveConfigs:
    """Reads the configs of an image. `broker_id` is the broker whose values count for topics."""

    def __init__(self, image: MetadataImage, rules: ConfigRules, broker_id: int | None) -> None:
        self._image = image
        self._rules = rules
        self._broker_id = broker_id

    def topic_values(self, topic: str) -> ConfigValues:
        rules = self._rules
        defaults = (rules.topic_defaults(values) for _, values in self._broker_layers())
        return ConfigValues(
            _parse_stored(rules.topic_schema, self._image.topic_configs(topic)),
            *defaults,
        )

    def group_values(self, group_id: str) -> ConfigValues:
        return self.group_values_with(self._image.group_configs(group_id))

    def group_values_with(self, overrides: Mapping[str, str]) -> ConfigValues:
        """For a group with these values of its own."""
        own = _parse_stored(self._rules.group_schema, overrides)
        return ConfigValues(
            own, *(self._group_defaults(values) for _, values in self._broker_layers())
        )

    def broker_values(self) -> ConfigValues:
        return ConfigValues(*(values for _, values in self._broker_layers()))

    def describe_topic(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Every topic key, for a topic with these values of its own."""
        layers = [
            (source, self._rules.topic_defaults(values)) for source, values in self._broker_layers()
        ]
        return [
            _entry(key, overrides, layers, ConfigSource.TOPIC) for key in self._rules.topic_schema
        ]

    def describe_group(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Every group key, for a group with these values of its own."""
        layers = [
            (source, self._group_defaults(values)) for source, values in self._broker_layers()
        ]
        return [
            _entry(key, overrides, layers, ConfigSource.GROUP) for key in self._rules.group_schema
        ]

    def describe_broker(self) -> list[ConfigEntry]:
        layers = self._broker_layers()
        schema = self._rules.broker_schema
        of_listeners = [schema[name] for name in self._rules.static if name not in schema]
        return [_broker_entry(key, layers) for key in (*schema, *of_listeners)]

    def _group_defaults(self, broker: Values) -> Values:
        return {
            key.name: broker[key.synonym]
            for key in self._rules.group_schema
            if key.synonym is not None and key.synonym in broker
        }

    def _broker_layers(self) -> list[tuple[ConfigSource, Values]]:
        schema = self._rules.broker_schema
        layers: list[tuple[ConfigSource, Values]] = []
        if self._broker_id is not None:
            own = self._image.broker_configs(self._broker_id)
            layers.append((ConfigSource.DYNAMIC_BROKER, _parse_stored(schema, own)))
        shared = self._image.default_broker_configs()
        layers.append((ConfigSource.DYNAMIC_DEFAULT_BROKER, _parse_stored(schema, shared)))
        layers.append((ConfigSource.STATIC_BROKER, self._rules.static))
        return layers


def _parse_stored(schema: ConfigSchema, stored: Mapping[str, str]) -> Values:
    """What another release accepted and this one does not is as if it were not set."""
    values: dict[str, object] = {}
    for name, text in stored.items():
        try:
            values[name] = schema[name].parse(text)
        except ApiError:
            continue
    return values


def _entry(
    key: ConfigKey[Any],
    overrides: Mapping[str, str],
    layers: list[tuple[ConfigSource, Values]],
    own_source: ConfigSource,
) -> ConfigEntry:
    name = key.synonym or key.name
    synonyms = _layer_synonyms(key, name, layers)
    if key.name in overrides:
        own = ConfigSynonym(key.name, overrides[key.name], own_source)
        synonyms.insert(0, own)
    return ConfigEntry(key, tuple(synonyms))


def _broker_entry(key: ConfigKey[Any], layers: list[tuple[ConfigSource, Values]]) -> ConfigEntry:
    return ConfigEntry(key, tuple(_layer_synonyms(key, key.name, layers)))


def _layer_synonyms(
    key: ConfigKey[Any], name: str, layers: list[tuple[ConfigSource, Values]]
) -> list[ConfigSynonym]:
    synonyms = [
        ConfigSynonym(name, _text(key, values[key.name]), source)
        for source, values in layers
        if key.name in values
    ]
    return [*synonyms, ConfigSynonym(name, _text(key, key.default), ConfigSource.DEFAULT)]


def _text(key: ConfigKey[Any], value: object) -> str | None:
    return None if value is None else key.format(value)
