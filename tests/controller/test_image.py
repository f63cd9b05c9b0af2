from typing import Any
from uuid import UUID

from kio.schema.types import BrokerId, ProducerId, TopicName
from kio.static.primitive import i8, i16, i32, i64, u16

from ottla.controller.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
)
from ottla.controller.records import (
    FENCE,
    UNFENCE,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

ORDERS = UUID(int=1)


def broker(broker_id: int, **fields: Any) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=BrokerId(broker_id),
        incarnation_id=UUID(int=100 + broker_id),
        broker_epoch=i64(broker_id),
        end_points=(BrokerEndpoint(name="PLAINTEXT", host="localhost", port=u16(9092)),),
        **fields,
    )


def image_of(*records: object) -> MetadataImage:
    image = MetadataImage()
    for record in records:
        image.replay(record)
    return image


def first_partition(image: MetadataImage) -> PartitionRecord:
    partition = image.partition("orders", 0)
    assert partition is not None
    return partition


def orders(**fields: Any) -> tuple[TopicRecord, PartitionRecord]:
    return (
        TopicRecord(name=TopicName("orders"), topic_id=ORDERS),
        PartitionRecord(
            partition_id=i32(0),
            topic_id=ORDERS,
            replicas=(BrokerId(1), BrokerId(2)),
            isr=(BrokerId(1), BrokerId(2)),
            leader=BrokerId(1),
            **fields,
        ),
    )


def test_a_topic_is_found_by_name_by_id_and_by_partition() -> None:
    image = image_of(*orders())
    assert image.topic_id("orders") == ORDERS
    assert image.topic_name(ORDERS) == "orders"
    assert image.partition_count("orders") == 1
    assert first_partition(image).leader == 1
    assert image.partition("orders", 1) is None
    assert image.partition("other", 0) is None
    assert image.topic_by_id(ORDERS) is image.topics["orders"]
    assert list(image.topic_names()) == ["orders"]


def test_unknown_topics_are_none() -> None:
    image = MetadataImage()
    assert image.topic_id("x") is None
    assert image.topic_name(ORDERS) is None
    assert image.partition_count("x") is None


def test_a_removed_topic_takes_its_configs_with_it() -> None:
    image = image_of(
        *orders(),
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="orders", name="a", value="1"),
        RemoveTopicRecord(topic_id=ORDERS),
    )
    assert image == MetadataImage()


def test_a_new_leader_raises_both_epochs() -> None:
    change = PartitionChangeRecord(
        partition_id=i32(0), topic_id=ORDERS, leader=BrokerId(2), isr=(BrokerId(2),)
    )
    image = image_of(*orders(leader_epoch=4, partition_epoch=9), change)
    partition = first_partition(image)
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (2, 5, 10)
    assert partition.isr == (2,)
    assert partition.replicas == (1, 2)


def test_a_change_of_the_in_sync_set_keeps_the_leader_epoch() -> None:
    change = PartitionChangeRecord(partition_id=i32(0), topic_id=ORDERS, isr=(BrokerId(1),))
    partition = first_partition(image_of(*orders(), change))
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 0, 1)


def test_a_config_without_value_goes_back_to_the_default() -> None:
    def config(value: str | None) -> ConfigRecord:
        return ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="1", name="a", value=value)

    image = image_of(config("x"))
    assert image.broker_configs(1) == {"a": "x"}
    image.replay(config(None))
    assert image == MetadataImage()


def test_fencing_and_shutdown_take_a_broker_out_of_the_active_ones() -> None:
    image = image_of(broker(2, fenced=False), broker(1), broker(3, fenced=False))
    assert [active.broker_id for active in image.active_brokers()] == [2, 3]
    image.replay(
        BrokerRegistrationChangeRecord(broker_id=BrokerId(1), broker_epoch=i64(1), fenced=UNFENCE)
    )
    image.replay(
        BrokerRegistrationChangeRecord(broker_id=BrokerId(2), broker_epoch=i64(2), fenced=FENCE)
    )
    image.replay(
        BrokerRegistrationChangeRecord(
            broker_id=BrokerId(3), broker_epoch=i64(3), in_controlled_shutdown=i8(1)
        )
    )
    assert [active.broker_id for active in image.active_brokers()] == [1]
    image.replay(UnregisterBrokerRecord(broker_id=BrokerId(1), broker_epoch=i64(1)))
    assert image.active_brokers() == []


def test_a_snapshot_gives_the_same_image() -> None:
    image = image_of(
        broker(1, fenced=False),
        *orders(),
        PartitionChangeRecord(partition_id=i32(0), topic_id=ORDERS, leader=BrokerId(2)),
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="orders", name="a", value="1"),
        FeatureLevelRecord(name="metadata.version", feature_level=i16(25)),
        ProducerIdsRecord(
            broker_id=BrokerId(1), broker_epoch=i64(1), next_producer_id=ProducerId(1000)
        ),
    )
    assert image_of(*image.snapshot()) == image
    assert image.next_producer_id == 1000


def test_the_version_of_the_topics_grows_with_topics_and_partitions_only() -> None:
    image = image_of(*orders())
    after_creation = image.topics_version
    image.replay(PartitionChangeRecord(partition_id=i32(0), topic_id=ORDERS, leader=BrokerId(2)))
    image.replay(broker(1))
    assert image.topics_version == after_creation > 0
    image.replay(RemoveTopicRecord(topic_id=ORDERS))
    assert image.topics_version > after_creation
