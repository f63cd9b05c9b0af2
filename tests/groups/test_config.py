from ottla.groups.config import BROKER_KEYS, GroupConfig
from ottla.protocol.config import ConfigSchema, ConfigValues


def test_defaults_are_those_of_the_keys() -> None:
    assert GroupConfig.of(ConfigValues()) == GroupConfig()


def test_every_default_is_valid() -> None:
    for key in ConfigSchema(BROKER_KEYS):
        assert key.parse(key.format(key.default)) == key.default


def test_values_are_read() -> None:
    values = ConfigValues({"offsets.retention.minutes": 2, "group.max.size": 3})

    config = GroupConfig.of(values)

    assert (config.offsets_retention_ms, config.max_size) == (120_000, 3)
