"""The effective value of a config key, and its source.

From highest to lowest precedence: the topic's or group's own value, the broker's dynamic value, the
dynamic value for all brokers, the broker's file, the default. In all but the first and the last,
keys of topics and groups use the value of their broker synonym.
"""

import enum
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ottla.controller.client_metrics import CLIENT_METRICS_SCHEMA
from ottla.controller.image import MetadataImage
from ottla.protocol.config import ConfigKey, ConfigSchema, ConfigValues, undeclared_key
from ottla.protocol.errors import ApiError
from ottla.protocol.lazy_dataclass import dataclass

Values = Mapping[str, object]  # Parsed values by key name.


class ConfigSource(enum.IntEnum):
    """Values as in DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    key: ConfigKey[Any]
    synonyms: tuple[ConfigSynonym, ...]  # Highest precedence first; that one is effective.

    @property
    def value(self) -> str | None:
        return self.synonyms[0].value if self.synonyms else self.key.default_text

    @property
    def source(self) -> ConfigSource:
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT


_NO_KEYS = ConfigSchema(())


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """What is fixed for the life of the process."""

    topic_schema: ConfigSchema
    broker_schema: ConfigSchema
    static: Values  # The topic key values that broker values imply.
    topic_defaults: Callable[[Values], Values]  # What broker values say about topic keys.
    group_schema: ConfigSchema = _NO_KEYS
    # With the values of a group and of the broker; raises ApiError if the group cannot have them.
    validate_group: Callable[[ConfigValues, ConfigValues], None] = lambda _group, _broker: None


class EffectiveConfigs:
    """Reads the configs of an image. Topics use the values of the broker `broker_id`."""

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
        """For a group with these own values."""
        own = _parse_stored(self._rules.group_schema, overrides)
        return ConfigValues(
            own, *(self._group_defaults(values) for _, values in self._broker_layers())
        )

    def broker_values(self) -> ConfigValues:
        return ConfigValues(*(values for _, values in self._broker_layers()))

    def describe_topic(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Every topic key, for a topic with these own values; internal ones only if set."""
        layers = [
            (source, self._rules.topic_defaults(values)) for source, values in self._broker_layers()
        ]
        entries = (
            self._entry(key, overrides, layers, ConfigSource.TOPIC)
            for key in self._rules.topic_schema
        )
        return [*filter(_is_shown, entries)]

    def describe_group(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Every group key, for a group with these own values."""
        layers = [
            (source, self._group_defaults(values)) for source, values in self._broker_layers()
        ]
        return [
            self._entry(key, overrides, layers, ConfigSource.GROUP)
            for key in self._rules.group_schema
        ]

    def describe_client_metrics(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Every key of a client metrics subscription, which inherits nothing from the broker."""
        source = ConfigSource.CLIENT_METRICS
        return [self._entry(key, overrides, [], source) for key in CLIENT_METRICS_SCHEMA]

    def describe_broker(self) -> list[ConfigEntry]:
        layers = self._broker_layers()
        schema = self._rules.broker_schema
        given = {name: None for _, values in layers for name in values if name not in schema}
        of_listeners = [schema[name] for name in given]
        known = [_broker_entry(key, layers) for key in (*schema, *of_listeners)]
        return [*filter(_is_shown, known), *self._undeclared_entries()]

    def _undeclared_entries(self) -> list[ConfigEntry]:
        """Undeclared keys that were set for brokers. Their values may be secrets."""
        schema = self._rules.broker_schema
        found: dict[str, list[ConfigSource]] = {}
        for source, stored in self._stored_broker_configs():
            for name in stored:
                if not schema.finds(name):
                    found.setdefault(name, []).append(source)
        return [
            ConfigEntry(
                undeclared_key(name),
                tuple(ConfigSynonym(name, None, source) for source in sources),
            )
            for name, sources in found.items()
        ]

    def _entry(
        self,
        key: ConfigKey[Any],
        overrides: Mapping[str, str],
        layers: list[tuple[ConfigSource, Values]],
        own_source: ConfigSource,
    ) -> ConfigEntry:
        name = key.synonym or key.name
        synonyms = _layer_synonyms(key, name, layers)
        if self._broker_shows_default(key):
            synonyms.append(ConfigSynonym(name, key.format(key.default), ConfigSource.DEFAULT))
        if key.name in overrides:
            own = ConfigSynonym(key.name, overrides[key.name], own_source)
            synonyms.insert(0, own)
        return ConfigEntry(key, tuple(synonyms))

    def _broker_shows_default(self, key: ConfigKey[Any]) -> bool:
        """Whether the topic key has a broker synonym with a default."""
        schema = self._rules.broker_schema
        if key.synonym is None or key.synonym not in schema:
            return False
        return schema[key.synonym].default_text is not None

    def _group_defaults(self, broker: Values) -> Values:
        return {
            key.name: broker[key.synonym]
            for key in self._rules.group_schema
            if key.synonym is not None and key.synonym in broker
        }

    def _broker_layers(self) -> list[tuple[ConfigSource, Values]]:
        schema = self._rules.broker_schema
        layers: list[tuple[ConfigSource, Values]] = [
            (source, _parse_stored(schema, stored))
            for source, stored in self._stored_broker_configs()
        ]
        layers.append((ConfigSource.STATIC_BROKER, self._rules.static))
        return layers

    def _stored_broker_configs(self) -> list[tuple[ConfigSource, Mapping[str, str]]]:
        stored: list[tuple[ConfigSource, Mapping[str, str]]] = [
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, self._image.default_broker_configs())
        ]
        if self._broker_id is not None:
            own = self._image.broker_configs(self._broker_id)
            stored.insert(0, (ConfigSource.DYNAMIC_BROKER, own))
        return stored


def _parse_stored(schema: ConfigSchema, stored: Mapping[str, str]) -> Values:
    """A value that another release accepted and this one rejects counts as unset."""
    values: dict[str, object] = {}
    for name, text in stored.items():
        try:
            values[name] = schema[name].parse(text)
        except ApiError:
            continue
    return values


def _broker_entry(key: ConfigKey[Any], layers: list[tuple[ConfigSource, Values]]) -> ConfigEntry:
    synonyms = _layer_synonyms(key, key.name, layers)
    if key.default_text is not None:
        synonyms.append(ConfigSynonym(key.name, key.default_text, ConfigSource.DEFAULT))
    return ConfigEntry(key, tuple(synonyms))


def _is_shown(entry: ConfigEntry) -> bool:
    return not entry.key.internal or any(
        synonym.source is not ConfigSource.DEFAULT for synonym in entry.synonyms
    )


def _layer_synonyms(
    key: ConfigKey[Any], name: str, layers: list[tuple[ConfigSource, Values]]
) -> list[ConfigSynonym]:
    return [
        ConfigSynonym(name, _text(key, values[key.name]), source)
        for source, values in layers
        if key.name in values
    ]


def _text(key: ConfigKey[Any], value: object) -> str | None:
    return None if value is None else key.format(value)
