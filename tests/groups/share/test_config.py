from ottla.groups.share.config import BROKER_KEYS, GROUP_KEYS, ShareConfig
from ottla.protocol.config import ConfigValues


def test_every_group_key_has_a_broker_key() -> None:
    names = {key.name for key in BROKER_KEYS}

    assert {key.synonym for key in GROUP_KEYS} <= names


def test_values() -> None:
    broker = ConfigValues({"group.share.max.size": 3})
    group = ConfigValues(
        {"share.delivery.count.limit": 2, "share.isolation.level": "read_committed"}
    )

    assert ShareConfig.of(ConfigValues(), ConfigValues()) == ShareConfig()
    assert ShareConfig.of(group, broker) == ShareConfig(
        max_size=3, delivery_count_limit=2, committed_only=True
    )
