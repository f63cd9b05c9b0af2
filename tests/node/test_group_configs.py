"""Group settings follow the configs of the cluster."""

import pytest

from ottla.controller.effective_configs import ConfigRules, EffectiveConfigs
from ottla.controller.image import BROKER_RESOURCE, GROUP_RESOURCE, MetadataImage
from ottla.controller.records import ConfigRecord
from ottla.node import group_configs
from ottla.node.config import BROKER_SCHEMA, GROUP_SCHEMA, TOPIC_SCHEMA
from ottla.node.group_configs import GroupConfigs


@pytest.fixture
def image() -> MetadataImage:
    return MetadataImage()


@pytest.fixture
def configs(image: MetadataImage) -> GroupConfigs:
    static = BROKER_SCHEMA.parse({"group.share.delivery.count.limit": "4"})
    rules = ConfigRules(TOPIC_SCHEMA, BROKER_SCHEMA, static, lambda values: values, GROUP_SCHEMA)
    return GroupConfigs(EffectiveConfigs(image, rules, 1), image)


def alter(image: MetadataImage, resource_type: int, name: str, key: str, value: str | None) -> None:
    image.replay(
        ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)  # type: ignore[arg-type]
    )


def test_a_group_has_its_own_values_and_those_of_the_broker(
    configs: GroupConfigs, image: MetadataImage
) -> None:
    assert configs.share("g").delivery_count_limit == 4

    alter(image, GROUP_RESOURCE, "g", "share.delivery.count.limit", "3")
    assert configs.share("g").delivery_count_limit == 3
    assert configs.share("h").delivery_count_limit == 4
    alter(image, GROUP_RESOURCE, "g", "share.delivery.count.limit", None)
    assert configs.share("g").delivery_count_limit == 4


def test_a_dynamic_value_of_the_broker_holds_at_once(
    configs: GroupConfigs, image: MetadataImage
) -> None:
    assert configs.consumer("g").pace.assignment_interval_ms == 1_000

    alter(image, BROKER_RESOURCE, "1", "group.consumer.assignment.interval.ms", "7")

    assert configs.consumer("g").pace.assignment_interval_ms == 7


def test_what_is_kept_is_made_once_and_not_for_ever(
    configs: GroupConfigs, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = configs.consumer("g")
    assert configs.consumer("g") is first

    monkeypatch.setattr(group_configs, "_GROUPS_MAX", 3)
    for name in ("a", "b", "c"):
        configs.share(name)
    assert configs.consumer("g") is not first
