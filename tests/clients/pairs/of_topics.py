"""Pairs that change topics and configs, and that observe the change."""

from functools import partial
from typing import Any

from tests.clients.pairs.pair import (
    Pair,
    Row,
    World,
    add_pairs,
    code_of_first,
    code_of_second,
    end_seen_by_second,
    list_offsets,
    metadata,
    new_name,
    new_topic,
    pair,
    produce,
)
from tests.clients.requests import TIMEOUT
from tests.clients.versions import build_request

from ottla.protocol.errors import ErrorCode

CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 32, 33, 44
DESCRIBE_TOPIC_PARTITIONS, LIST_CONFIG_RESOURCES = 75, 74
API_VERSIONS, UPDATE_FEATURES = 18, 57
TOPIC, GROUP = 2, 32
RETENTION = "retention.ms"


def create(topic: str, partitions: int = 1) -> Any:
    wanted = {
        "name": topic,
        "num_partitions": partitions,
        "replication_factor": 1,
        "assignments": (),
        "configs": ({"name": RETENTION, "value": "4711"},),
    }
    return build_request(CREATE_TOPICS, 7, {"topics": (wanted,), "timeout": TIMEOUT})


def create_three(topic: str) -> Any:
    return create(topic, 3)


def delete(topic: str) -> Any:
    topics = ({"name": topic, "topic_id": None},)
    return build_request(DELETE_TOPICS, 6, {"topics": topics, "timeout": TIMEOUT})


def add_partitions(topic: str, count: int = 3) -> Any:
    wanted = {"name": topic, "count": count, "assignments": None}
    values = {"topics": (wanted,), "timeout": TIMEOUT, "validate_only": False}
    return build_request(CREATE_PARTITIONS, 3, values)


def describe_configs(topic: str, name: str = RETENTION) -> Any:
    resource = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": (name,)}
    return build_request(DESCRIBE_CONFIGS, 4, {"resources": (resource,)})


def alter_configs(topic: str, value: str) -> Any:
    configs = ({"name": RETENTION, "value": value},)
    resource = {"resource_type": TOPIC, "resource_name": topic, "configs": configs}
    return build_request(ALTER_CONFIGS, 2, {"resources": (resource,), "validate_only": False})


def set_config(name: str, key: str, value: str, *, kind: int = TOPIC) -> Any:
    configs = ({"name": key, "config_operation": 0, "value": value},)
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    values = {"resources": (resource,), "validate_only": False}
    return build_request(INCREMENTAL_ALTER_CONFIGS, 1, values)


def describe_partitions(topic: str) -> Any:
    return build_request(DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": ({"name": topic},)})


def partitions_count(response: Any) -> int | ErrorCode:
    (found,) = response.topics
    return len(found.partitions) if found.error_code is ErrorCode.none else found.error_code


def count_seen_by_first(first: Any, _: Any) -> int | ErrorCode:
    return partitions_count(first)


def count_seen_by_second(_: Any, second: Any) -> int | ErrorCode:
    return partitions_count(second)


def values(response: Any) -> list[str]:
    return [config.value for result in response.results for config in result.configs]


def values_seen_by_first(first: Any, _: Any) -> list[str]:
    return values(first)


def values_seen_by_second(_: Any, second: Any) -> list[str]:
    return values(second)


UNKNOWN = ErrorCode.unknown_topic_or_partition

add_pairs(
    new_name,
    {
        "create_topics_and_metadata": Row(create_three, metadata, count_seen_by_second, 3),
        "create_topics_and_describe_topic_partitions": Row(
            create_three, describe_partitions, count_seen_by_second, 3
        ),
        "create_topics_and_produce": Row(create, produce, code_of_second, ErrorCode.none),
        "create_topics_and_list_offsets": Row(create, list_offsets, end_seen_by_second, 0),
        "create_topics_and_describe_configs": Row(
            create, describe_configs, values_seen_by_second, ["4711"]
        ),
        "create_topics_and_create_topics": Row(
            create, create, code_of_second, ErrorCode.topic_already_exists
        ),
        "create_topics_and_create_partitions": Row(
            create, add_partitions, code_of_second, ErrorCode.none
        ),
        "create_topics_and_delete_topics": Row(create, delete, code_of_second, ErrorCode.none),
        "metadata_and_create_topics": Row(metadata, create, count_seen_by_first, UNKNOWN),
    },
)

add_pairs(
    new_topic,
    {
        "delete_topics_and_metadata": Row(delete, metadata, count_seen_by_second, UNKNOWN),
        "delete_topics_and_produce": Row(delete, produce, code_of_second, UNKNOWN),
        "delete_topics_and_create_topics": Row(delete, create, code_of_second, ErrorCode.none),
        "metadata_and_delete_topics": Row(metadata, delete, count_seen_by_first, 1),
        "create_partitions_and_metadata": Row(add_partitions, metadata, count_seen_by_second, 3),
        "create_partitions_and_produce": Row(
            add_partitions, partial(produce, partition=2), code_of_second, ErrorCode.none
        ),
        "create_partitions_and_list_offsets": Row(
            add_partitions, partial(list_offsets, partition=2), end_seen_by_second, 0
        ),
        "create_partitions_and_create_partitions": Row(
            add_partitions,
            partial(add_partitions, count=2),
            code_of_second,
            ErrorCode.invalid_partitions,
        ),
        "metadata_and_create_partitions": Row(metadata, add_partitions, count_seen_by_first, 1),
    },
)


@pair
def list_offsets_and_delete_topics(world: World) -> Pair:
    """Timestamps are looked up in files."""
    topic = world.topic(b"a", b"b")
    return Pair(list_offsets(topic, 1), delete(topic), code_of_first, ErrorCode.none)


@pair
def incremental_alter_configs_and_describe_configs(world: World) -> Pair:
    topic = world.topic()
    second = describe_configs(topic)
    return Pair(set_config(topic, RETENTION, "4711"), second, values_seen_by_second, ["4711"])


@pair
def alter_configs_and_describe_configs(world: World) -> Pair:
    topic = world.topic()
    return Pair(
        alter_configs(topic, "4711"), describe_configs(topic), values_seen_by_second, ["4711"]
    )


@pair
def describe_configs_and_incremental_alter_configs(world: World) -> Pair:
    topic = world.topic()
    world.call(set_config(topic, RETENTION, "4711"))
    second = set_config(topic, RETENTION, "4712")
    return Pair(describe_configs(topic), second, values_seen_by_first, ["4711"])


@pair
def incremental_alter_configs_and_produce(world: World) -> Pair:
    topic = world.topic()
    return Pair(
        set_config(topic, "max.message.bytes", "100"),
        produce(topic, bytes(1000)),
        code_of_second,
        ErrorCode.message_too_large,
    )


@pair
def produce_and_incremental_alter_configs(world: World) -> Pair:
    topic = world.topic()
    return Pair(
        produce(topic, bytes(1000)),
        set_config(topic, "max.message.bytes", "100"),
        code_of_first,
        ErrorCode.none,
    )


@pair
def incremental_alter_configs_and_list_config_resources(world: World) -> Pair:
    group = world.new_name()
    first = set_config(group, "consumer.session.timeout.ms", "50000", kind=GROUP)
    second = build_request(LIST_CONFIG_RESOURCES, 1, {"resource_types": (GROUP,)})

    def listed(_: Any, response: Any) -> bool:
        return group in [resource.resource_name for resource in response.config_resources]

    return Pair(first, second, listed, True)


@pair
def update_features_and_api_versions(world: World) -> Pair:
    values = {"client_software_name": "pairs", "client_software_version": "1"}

    def level(_: Any, response: Any) -> int:
        levels: dict[str, int] = {
            feature.name: feature.max_version_level for feature in response.finalized_features
        }
        return levels["transaction.version"]

    return Pair(
        set_transaction_version(1),
        build_request(API_VERSIONS, 3, values),
        level,
        1,
        after=lambda: world.call(set_transaction_version(2)),
    )


def set_transaction_version(level: int) -> Any:
    upgrade, safe_downgrade = 1, 2
    feature = {
        "feature": "transaction.version",
        "max_version_level": level,
        "upgrade_type": upgrade if level == 2 else safe_downgrade,
    }
    return build_request(UPDATE_FEATURES, 1, {"feature_updates": (feature,)})
