"""The APIs that are served; ApiVersions answers from this table."""

from typing import Final

from ottla.handlers import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_topic_partitions,
    fetch,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
    list_offsets,
    metadata,
    produce,
)
from ottla.handlers.api import Api, ColdApi, HotApi

_APIS: Final[tuple[Api, ...]] = (
    HotApi(0, "Produce", 3, 13, produce.handle_produce, claimed_low=0),
    HotApi(1, "Fetch", 4, 18, fetch.handle_fetch, claimed_low=4),
    ColdApi(2, "ListOffsets", 1, 11, list_offsets.handle_list_offsets, list_offsets.error_response),
    ColdApi(3, "Metadata", 0, 13, metadata.handle_metadata, metadata.error_response),
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
        44,
        "IncrementalAlterConfigs",
        0,
        1,
        incremental_alter_configs.handle_incremental_alter_configs,
        incremental_alter_configs.error_response,
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
