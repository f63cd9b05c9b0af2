"""Kafka's protocol authorization table: the cluster."""

from tests.clients.authorization.asked import (
    ACL,
    ACL_FILTER,
    alter_log_dirs,
    describe_quorum,
    elect_leaders,
    reassign,
)
from tests.clients.authorization.case import (
    CLUSTER_DENIED,
    GROUP,
    NONE,
    NOTHING,
    UNCHECKED,
    UNKNOWN_ID,
    Case,
    cluster,
    topic,
)
from tests.clients.authorization.entities import request
from tests.clients.authorization.shown import cluster_shown

QUOTA = {"entity": [{"entity_type": "user", "entity_name": "none"}], "ops": []}
FOR_ADMIN = {"owner_principal_type": "User", "owner_principal_name": "admin"}
TOKENS_OFF = {"delegation_token_auth_disabled"}

CASES: tuple[Case, ...] = (
    # The cluster.
    Case("DescribeAcls", "denied", NOTHING, request(29, 3, **ACL_FILTER), CLUSTER_DENIED),
    Case("DescribeAcls", "allowed", (cluster("DESCRIBE"),), request(29, 3, **ACL_FILTER), NONE),
    Case("DescribeAcls", "implied", (cluster("ALTER"),), request(29, 3, **ACL_FILTER), NONE),
    Case(
        "CreateAcls",
        "denied",
        (cluster("DESCRIBE"),),
        request(30, 3, creations=[ACL]),
        CLUSTER_DENIED,
    ),
    Case(
        "CreateAcls",
        "allowed",
        (cluster("ALTER"),),
        request(30, 3, creations=[ACL]),
        {"invalid_request"},
    ),
    Case(
        "CreateAcls",
        "of another cluster",
        (cluster("ALTER"),),
        request(30, 3, creations=[{**ACL, "resource_type": 4, "resource_name": "other"}]),
        {"invalid_request"},
    ),
    Case(
        "CreateAcls",
        "of a filter's pattern",
        (cluster("ALTER"),),
        request(30, 3, creations=[{**ACL, "resource_name": "n", "resource_pattern_type": 2}]),
        UNCHECKED,
    ),
    Case(
        "CreateAcls",
        "of a principal without a type",
        (cluster("ALTER"),),
        request(30, 3, creations=[{**ACL, "resource_name": "n", "principal": "nobody"}]),
        {"invalid_request"},
    ),
    Case(
        "DeleteAcls",
        "denied",
        (cluster("DESCRIBE"),),
        request(31, 3, filters=[ACL_FILTER]),
        CLUSTER_DENIED,
    ),
    Case("DeleteAcls", "allowed", (cluster("ALTER"),), request(31, 3, filters=[ACL_FILTER]), NONE),
    Case(
        "DescribeCluster",
        "without operations",
        NOTHING,
        request(60, 1, endpoint_type=1),
        NONE,
        cluster_shown,
        -2147483648,
    ),
    Case(
        "DescribeCluster",
        "operations, denied",
        NOTHING,
        request(60, 1, endpoint_type=1, include_cluster_authorized_operations=True),
        NONE,
        cluster_shown,
        0,
    ),
    Case(
        "DescribeCluster",
        "operations",
        (cluster("ALTER"),),
        request(60, 1, endpoint_type=1, include_cluster_authorized_operations=True),
        NONE,
        cluster_shown,
        1 << 7 | 1 << 8,
    ),
    Case(
        "DescribeLogDirs",
        "denied",
        (cluster("ALTER_CONFIGS"),),
        request(35, 4, topics=None),
        CLUSTER_DENIED,
    ),
    Case("AlterReplicaLogDirs", "denied", (cluster("DESCRIBE"),), alter_log_dirs(), CLUSTER_DENIED),
    Case(
        "AlterReplicaLogDirs",
        "allowed",
        (cluster("ALTER"),),
        alter_log_dirs(),
        {"log_dir_not_found"},
    ),
    Case("DescribeLogDirs", "allowed", (cluster("DESCRIBE"),), request(35, 4, topics=None), NONE),
    Case("ElectLeaders", "denied", (cluster("DESCRIBE"),), elect_leaders(), CLUSTER_DENIED),
    Case(
        "ElectLeaders",
        "allowed",
        (cluster("ALTER"),),
        elect_leaders(),
        {"none", "election_not_needed"},
    ),
    Case(
        "AlterPartitionReassignments", "denied", (cluster("DESCRIBE"),), reassign(), CLUSTER_DENIED
    ),
    Case(
        "AlterPartitionReassignments",
        "allowed",
        (cluster("ALTER"),),
        reassign(),
        {"none", "no_reassignment_in_progress"},
    ),
    Case(
        "ListPartitionReassignments", "denied", NOTHING, request(46, 0, topics=None), CLUSTER_DENIED
    ),
    Case(
        "ListPartitionReassignments",
        "allowed",
        (cluster("DESCRIBE"),),
        request(46, 0, topics=None),
        NONE,
    ),
    Case(
        "DescribeUserScramCredentials",
        "denied",
        NOTHING,
        request(50, 0, users=[{"name": "none"}]),
        CLUSTER_DENIED,
    ),
    Case(
        "DescribeUserScramCredentials",
        "allowed",
        (cluster("DESCRIBE"),),
        request(50, 0, users=[{"name": "none"}]),
        {"none", "resource_not_found"},
    ),
    Case(
        "AlterUserScramCredentials",
        "denied",
        (cluster("DESCRIBE"),),
        request(51, 0, deletions=[{"name": "none", "mechanism": 1}]),
        CLUSTER_DENIED,
    ),
    Case(
        "AlterUserScramCredentials",
        "allowed",
        (cluster("ALTER"),),
        request(51, 0, deletions=[{"name": "none", "mechanism": 1}]),
        {"resource_not_found"},
    ),
    *(
        Case(api, what, has, asked, codes)
        for api, operation, asked in (
            ("DescribeClientQuotas", "DESCRIBE_CONFIGS", request(48, 1)),
            ("AlterClientQuotas", "ALTER_CONFIGS", request(49, 1, entries=[QUOTA])),
        )
        for what, has, codes in (
            ("denied", (cluster("DESCRIBE"),), CLUSTER_DENIED),
            ("allowed", (cluster(operation),), UNCHECKED),
        )
    ),
    Case("DescribeQuorum", "denied", NOTHING, describe_quorum(), CLUSTER_DENIED),
    Case("DescribeQuorum", "allowed", (cluster("DESCRIBE"),), describe_quorum(), NONE),
    Case(
        "UpdateFeatures",
        "denied",
        (cluster("DESCRIBE"),),
        request(57, 1, validate_only=True),
        CLUSTER_DENIED,
    ),
    Case(
        "UpdateFeatures",
        "allowed",
        (cluster("ALTER"),),
        request(57, 1, validate_only=True),
        UNCHECKED,
    ),
    Case(
        "UnregisterBroker",
        "denied",
        (cluster("DESCRIBE"),),
        request(64, 0, broker_id=77),
        CLUSTER_DENIED,
    ),
    Case(
        "UnregisterBroker",
        "allowed",
        (cluster("ALTER"),),
        request(64, 0, broker_id=77),
        {"broker_id_not_registered"},
    ),
    Case(
        "AddRaftVoter",
        "denied",
        (cluster("DESCRIBE"),),
        request(80, 0, voter_id=77, cluster_id=None),
        CLUSTER_DENIED,
    ),
    Case(
        "RemoveRaftVoter",
        "denied",
        (cluster("DESCRIBE"),),
        request(81, 0, voter_id=77, cluster_id=None),
        CLUSTER_DENIED,
    ),
)

# Sent only by brokers; Kafka does not accept these on a client listener at all.
NODE_CASES: tuple[Case, ...] = (
    *(
        Case(api, "denied", (cluster("ALTER"), topic("ALL")), asked, CLUSTER_DENIED)
        for api, asked in (
            ("BrokerHeartbeat", request(63, 1, broker_id=1, broker_epoch=1)),
            ("BrokerRegistration", request(62, 1, broker_id=7, cluster_id="")),
            ("AllocateProducerIds", request(67, 0, broker_id=1)),
            ("AlterPartition", request(56, 2, broker_id=1)),
            ("Vote", request(52, 1, cluster_id=None)),
            ("BeginQuorumEpoch", request(53, 0, cluster_id=None)),
            ("EndQuorumEpoch", request(54, 0, cluster_id=None)),
            ("FetchSnapshot", request(59, 0, cluster_id=None)),
            ("AssignReplicasToDirs", request(73, 0, broker_id=1)),
            ("UpdateRaftVoter", request(82, 0, cluster_id=None, voter_id=1)),
            ("Envelope", request(58, 0, request_data=b"", request_principal=b"User:admin")),
            (
                "WriteShareGroupState",
                request(
                    85,
                    0,
                    group_id=GROUP,
                    topics=[{"topic_id": UNKNOWN_ID, "partitions": [{"partition": 0}]}],
                ),
            ),
        )
    ),
    # For others only with their permission; without the cluster's secret nobody gets one.
    Case(
        "CreateDelegationToken",
        "for somebody else, denied",
        (cluster("ALL"),),
        request(38, 3, **FOR_ADMIN),
        {"delegation_token_authorization_failed"},
    ),
    Case(
        "CreateDelegationToken",
        "for somebody else, allowed",
        (("user", "User:admin", "CREATE_TOKENS"),),
        request(38, 3, **FOR_ADMIN),
        TOKENS_OFF,
    ),
    *(
        Case(api, "for oneself", NOTHING, asked, TOKENS_OFF)
        for api, asked in (
            ("CreateDelegationToken", request(38, 3)),
            ("RenewDelegationToken", request(39, 2)),
            ("ExpireDelegationToken", request(40, 2)),
            ("DescribeDelegationToken", request(41, 3)),
        )
    ),
    Case(
        "AllocateProducerIds",
        "by CLUSTER_ACTION",
        (cluster("CLUSTER_ACTION"),),
        request(67, 0, broker_id=1, broker_epoch=-5),
        {"stale_broker_epoch"},
    ),
)
