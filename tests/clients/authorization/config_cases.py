"""Kafka's protocol authorization table: configs."""

from tests.clients.authorization.asked import alter_configs, describe_configs
from tests.clients.authorization.case import (
    CLUSTER_DENIED,
    GROUP,
    GROUP_DENIED,
    MISSING,
    NONE,
    NOTHING,
    TOPIC,
    TOPIC_DENIED,
    Case,
    cluster,
    group,
    topic,
)
from tests.clients.authorization.entities import request

CASES: tuple[Case, ...] = (
    # Configs: topics and groups need access to themselves, brokers to the cluster.
    Case(
        "DescribeConfigs",
        "topic denied",
        (topic("DESCRIBE"),),
        describe_configs(2, TOPIC),
        TOPIC_DENIED,
    ),
    Case(
        "DescribeConfigs",
        "topic missing, denied",
        NOTHING,
        describe_configs(2, MISSING),
        TOPIC_DENIED,
    ),
    Case(
        "DescribeConfigs", "topic", (topic("DESCRIBE_CONFIGS"),), describe_configs(2, TOPIC), NONE
    ),
    Case(
        "DescribeConfigs",
        "topic, implied",
        (topic("ALTER_CONFIGS"),),
        describe_configs(2, TOPIC),
        NONE,
    ),
    Case(
        "DescribeConfigs",
        "broker denied",
        (cluster("DESCRIBE"),),
        lambda w: describe_configs(4, str(w.node_id)),
        CLUSTER_DENIED,
    ),
    Case(
        "DescribeConfigs",
        "broker",
        (cluster("DESCRIBE_CONFIGS"),),
        lambda w: describe_configs(4, str(w.node_id)),
        NONE,
    ),
    Case(
        "DescribeConfigs",
        "group denied",
        (group("DESCRIBE"),),
        describe_configs(32, GROUP),
        GROUP_DENIED,
    ),
    Case(
        "DescribeConfigs", "group", (group("DESCRIBE_CONFIGS"),), describe_configs(32, GROUP), NONE
    ),
    Case(
        "AlterConfigs",
        "topic denied",
        (topic("DESCRIBE_CONFIGS"),),
        alter_configs(2, TOPIC, incremental=False),
        TOPIC_DENIED,
    ),
    Case(
        "AlterConfigs",
        "topic",
        (topic("ALTER_CONFIGS"),),
        alter_configs(2, TOPIC, incremental=False),
        NONE,
    ),
    Case(
        "AlterConfigs",
        "broker denied",
        (topic("ALTER_CONFIGS"),),
        lambda w: alter_configs(4, str(w.node_id), incremental=False),
        CLUSTER_DENIED,
    ),
    Case(
        "IncrementalAlterConfigs",
        "topic denied",
        (topic("DESCRIBE_CONFIGS"),),
        alter_configs(2, TOPIC),
        TOPIC_DENIED,
    ),
    Case(
        "IncrementalAlterConfigs",
        "missing, denied",
        NOTHING,
        alter_configs(2, MISSING),
        TOPIC_DENIED,
    ),
    Case(
        "IncrementalAlterConfigs", "topic", (topic("ALTER_CONFIGS"),), alter_configs(2, TOPIC), NONE
    ),
    Case(
        "IncrementalAlterConfigs",
        "broker denied",
        (cluster("ALTER"),),
        lambda w: alter_configs(4, str(w.node_id)),
        CLUSTER_DENIED,
    ),
    Case(
        "IncrementalAlterConfigs",
        "broker",
        (cluster("ALTER_CONFIGS"),),
        lambda w: alter_configs(4, str(w.node_id)),
        NONE,
    ),
    Case(
        "IncrementalAlterConfigs",
        "group denied",
        (group("READ"),),
        alter_configs(32, GROUP),
        GROUP_DENIED,
    ),
    Case(
        "IncrementalAlterConfigs",
        "group",
        (group("ALTER_CONFIGS"),),
        alter_configs(32, GROUP),
        NONE,
    ),
    Case("ListConfigResources", "denied", (cluster("DESCRIBE"),), request(74, 1), CLUSTER_DENIED),
    Case("ListConfigResources", "allowed", (cluster("DESCRIBE_CONFIGS"),), request(74, 1), NONE),
)
