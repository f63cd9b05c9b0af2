"""The APIs that are served; ApiVersions answers from this table."""

from typing import Final

from ottla.handlers import (
    alter_configs,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
    sync_group,
)
from ottla.handlers.api import Api, ColdApi, HotApi

_APIS: Final[tuple[Api, ...]] = (
    HotApi(0, "Produce", 3, 13, produce.handle_produce, claimed_low=0),
    HotApi(1, "Fetch", 4, 18, fetch.handle_fetch, claimed_low=4),
    ColdApi(2, "ListOffsets", 1, 11, list_offsets.handle_list_offsets, list_offsets.error_response),
    ColdApi(3, "Metadata", 0, 13, metadata.handle_metadata, metadata.error_response),
    ColdApi(
        8, "OffsetCommit", 2, 10, offset_commit.handle_offset_commit, offset_commit.error_response
    ),
    ColdApi(9, "OffsetFetch", 1, 10, offset_fetch.handle_offset_fetch, offset_fetch.error_response),
    ColdApi(
        10,
        "FindCoordinator",
        0,
        6,
        find_coordinator.handle_find_coordinator,
        find_coordinator.error_response,
    ),
    ColdApi(11, "JoinGroup", 0, 9, join_group.handle_join_group, join_group.error_response),
    ColdApi(12, "Heartbeat", 0, 4, heartbeat.handle_heartbeat, heartbeat.error_response),
    ColdApi(13, "LeaveGroup", 0, 5, leave_group.handle_leave_group, leave_group.error_response),
    ColdApi(14, "SyncGroup", 0, 5, sync_group.handle_sync_group, sync_group.error_response),
    ColdApi(
        15,
        "DescribeGroups",
        0,
        6,
        describe_groups.handle_describe_groups,
        describe_groups.error_response,
    ),
    ColdApi(16, "ListGroups", 0, 5, list_groups.handle_list_groups, list_groups.error_response),
    ColdApi(18, "ApiVersions", 0, 4, api_versions.handle_api_versions, api_versions.error_response),
    ColdApi(
        19, "CreateTopics", 2, 7, create_topics.handle_create_topics, create_topics.error_response
    ),
    ColdApi(
        20, "DeleteTopics", 1, 6, delete_topics.handle_delete_topics, delete_topics.error_response
    ),
    ColdApi(
        21,
        "DeleteRecords",
        0,
        2,
        delete_records.handle_delete_records,
        delete_records.error_response,
    ),
    ColdApi(
        22,
        "InitProducerId",
        0,
        5,
        init_producer_id.handle_init_producer_id,
        init_producer_id.error_response,
    ),
    ColdApi(
        32,
        "DescribeConfigs",
        1,
        4,
        describe_configs.handle_describe_configs,
        describe_configs.error_response,
    ),
    ColdApi(
        33, "AlterConfigs", 0, 2, alter_configs.handle_alter_configs, alter_configs.error_response
    ),
    ColdApi(
        35,
        "DescribeLogDirs",
        1,
        5,
        describe_log_dirs.handle_describe_log_dirs,
        describe_log_dirs.error_response,
    ),
    ColdApi(
        37,
        "CreatePartitions",
        0,
        3,
        create_partitions.handle_create_partitions,
        create_partitions.error_response,
    ),
    ColdApi(
        42, "DeleteGroups", 0, 2, delete_groups.handle_delete_groups, delete_groups.error_response
    ),
    ColdApi(
        44,
        "IncrementalAlterConfigs",
        0,
        1,
        incremental_alter_configs.handle_incremental_alter_configs,
        incremental_alter_configs.error_response,
    ),
    ColdApi(
        47, "OffsetDelete", 0, 0, offset_delete.handle_offset_delete, offset_delete.error_response
    ),
    ColdApi(
        60,
        "DescribeCluster",
        0,
        2,
        describe_cluster.handle_describe_cluster,
        describe_cluster.error_response,
    ),
    ColdApi(
        68,
        "ConsumerGroupHeartbeat",
        0,
        1,
        consumer_group_heartbeat.handle_consumer_group_heartbeat,
        consumer_group_heartbeat.error_response,
    ),
    ColdApi(
        69,
        "ConsumerGroupDescribe",
        0,
        1,
        consumer_group_describe.handle_consumer_group_describe,
        consumer_group_describe.error_response,
    ),
    ColdApi(
        74,
        "ListConfigResources",
        0,
        1,
        list_config_resources.handle_list_config_resources,
        list_config_resources.error_response,
    ),
    ColdApi(
        75,
        "DescribeTopicPartitions",
        0,
        0,
        describe_topic_partitions.handle_describe_topic_partitions,
        describe_topic_partitions.error_response,
    ),
)

API_TABLE: Final[dict[int, Api]] = {api.key: api for api in _APIS}
