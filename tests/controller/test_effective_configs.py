from typing import Any

from tests.controller.cluster import CLEANUP_POLICY, RETENTION_MS, config_rules

from ottla.controller.config import NUM_PARTITIONS
from ottla.controller.effective_configs import ConfigSource, ConfigSynonym, EffectiveConfigs
from ottla.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from ottla.controller.records import ConfigRecord


def configured(**static: Any) -> EffectiveConfigs:
    image = MetadataImage()
    for resource_type, resource_name, name, value in (
        (TOPIC_RESOURCE, "orders", "retention.ms", "1"),
        (BROKER_RESOURCE, "1", "log.retention.ms", "2"),
        (BROKER_RESOURCE, "", "log.retention.ms", "3"),
    ):
        image.replay(
            ConfigRecord(
                resource_type=resource_type, resource_name=resource_name, name=name, value=value
            )
        )
    return EffectiveConfigs(image, config_rules(**static), 1)


def test_synonyms_of_a_topic_key_are_listed_from_the_strongest_on() -> None:
    configs = configured(log_retention_ms="4")
    (entry,) = [
        entry
        for entry in configs.describe_topic({"retention.ms": "1"})
        if entry.key is RETENTION_MS
    ]
    assert entry.synonyms == (
        ConfigSynonym("retention.ms", "1", ConfigSource.TOPIC),
        ConfigSynonym("log.retention.ms", "2", ConfigSource.DYNAMIC_BROKER),
        ConfigSynonym("log.retention.ms", "3", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ConfigSynonym("log.retention.ms", "4", ConfigSource.STATIC_BROKER),
        ConfigSynonym("log.retention.ms", "1000", ConfigSource.DEFAULT),
    )
    assert (entry.value, entry.source) == ("1", ConfigSource.TOPIC)


def test_values_are_read_with_the_type_of_their_key() -> None:
    configs = configured(num_partitions="6")
    assert configs.topic_values("orders")[RETENTION_MS] == 1
    assert configs.topic_values("other")[RETENTION_MS] == 2
    assert configs.broker_values()[NUM_PARTITIONS] == 6


def test_every_broker_key_is_described() -> None:
    entries = {entry.key.name: entry for entry in configured().describe_broker()}
    assert entries["num.partitions"].source is ConfigSource.DEFAULT
    assert entries["log.retention.ms"].value == "2"


def test_stored_values_that_make_no_sense_any_more_are_as_if_not_set() -> None:
    image = MetadataImage()
    for name, value in (("retention.ms", "-7"), ("gone.key", "1"), ("cleanup.policy", "compact")):
        image.replay(
            ConfigRecord(
                resource_type=TOPIC_RESOURCE, resource_name="orders", name=name, value=value
            )
        )
    values = EffectiveConfigs(image, config_rules(), 1).topic_values("orders")
    assert values[RETENTION_MS] == 1000
    assert values[CLEANUP_POLICY] == ("compact",)
