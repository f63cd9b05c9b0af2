from ottla.groups.share.config import BROKER_KEYS, GROUP_KEYS, ShareConfig, group_values
from ottla.protocol.config import ConfigValues


def test_a_group_inherits_from_the_broker() -> None:
    broker = ConfigValues(
        {"group.share.record.lock.duration.ms": 20_000, "group.share.delivery.count.limit": 9}
    )

    config = ShareConfig.of(group_values({"share.delivery.count.limit": 2}, broker), broker)

    assert config == ShareConfig(record_lock_duration_ms=20_000, delivery_count_limit=2)


def test_every_group_key_has_a_broker_key() -> None:
    names = {key.name for key in BROKER_KEYS}

    assert {key.synonym for key in GROUP_KEYS} <= names
    assert ShareConfig.of(ConfigValues(), ConfigValues()) == ShareConfig()
