from uuid import UUID

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


def broker(broker_id, **fields):
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=UUID(int=100 + broker_id),
        broker_epoch=broker_id,
        end_points=(BrokerEndpoint(name="PLAINTEXT", host="localhost", port=9092),),
        **fields,
    )


def image_of(*records):
    image = MetadataImage()
    for record in records:
        image.replay(record)
    return image


def orders(**fields):
    return (
        TopicRecord(name="orders", topic_id=ORDERS),
        PartitionRecord(
            partition_id=0, topic_id=ORDERS, replicas=(1, 2), isr=(1, 2), leader=1, **fields
        ),
    )


def test_a_topic_is_found_by_name_by_id_and_by_partition():
    image = image_of(*orders())
    assert image.topic_id("orders") == ORDERS
    assert image.topic_name(ORDERS) == "orders"
    assert image.partition_count("orders") == 1
    assert image.partition("orders", 0).leader == 1
    assert image.partition("orders", 1) is None
    assert image.partition("other", 0) is None
    assert image.topic_by_id(ORDERS) is image.topics["orders"]
    assert list(image.topic_names()) == ["orders"]


def test_unknown_topics_are_none():
    image = MetadataImage()
    assert image.topic_id("x") is None
    assert image.topic_name(ORDERS) is None
    assert image.partition_count("x") is None


def test_a_removed_topic_takes_its_configs_with_it():
    image = image_of(
        *orders(),
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="orders", name="a", value="1"),
        RemoveTopicRecord(topic_id=ORDERS),
    )
    assert image == MetadataImage()


def test_a_new_leader_raises_both_epochs():
    change = PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2, isr=(2,))
    image = image_of(*orders(leader_epoch=4, partition_epoch=9), change)
    partition = image.partition("orders", 0)
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (2, 5, 10)
    assert partition.isr == (2,)
    assert partition.replicas == (1, 2)


def test_a_change_of_the_in_sync_set_keeps_the_leader_epoch():
    change = PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=(1,))
    partition = image_of(*orders(), change).partition("orders", 0)
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 0, 1)


def test_a_config_without_value_goes_back_to_the_default():
    def config(value):
        return ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="1", name="a", value=value)

    image = image_of(config("x"))
    assert image.broker_configs(1) == {"a": "x"}
    image.replay(config(None))
    assert image == MetadataImage()


def test_fencing_and_shutdown_take_a_broker_out_of_the_active_ones():
    image = image_of(broker(2, fenced=False), broker(1), broker(3, fenced=False))
    assert [active.broker_id for active in image.active_brokers()] == [2, 3]
    image.replay(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=UNFENCE))
    image.replay(BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=FENCE))
    image.replay(
        BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, in_controlled_shutdown=1)
    )
    assert [active.broker_id for active in image.active_brokers()] == [1]
    image.replay(UnregisterBrokerRecord(broker_id=1, broker_epoch=1))
    assert image.active_brokers() == []


def test_a_snapshot_gives_the_same_image():
    image = image_of(
        broker(1, fenced=False),
        *orders(),
        PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2),
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="orders", name="a", value="1"),
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000),
    )
    assert image_of(*image.snapshot()) == image
    assert image.next_producer_id == 1000


def test_the_version_of_the_topics_grows_with_topics_and_partitions_only():
    image = image_of(*orders())
    after_creation = image.topics_version
    image.replay(PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2))
    image.replay(broker(1))
    assert image.topics_version == after_creation > 0
    image.replay(RemoveTopicRecord(topic_id=ORDERS))
    assert image.topics_version > after_creation
