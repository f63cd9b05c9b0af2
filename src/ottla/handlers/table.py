"""The APIs that are served; ApiVersions answers from this table.

Requests on a connection are handled in order. If a handler does not answer at once, later requests
wait until it has, unless their order makes no difference: a produce behind a produce, an offset
commit behind another. `Fetch`, which waits for data, holds up what is behind it, as in Kafka.

The module of a cold API is imported on its first call: importing everything would delay the start
of a broker, and most brokers never see most APIs.
"""

from typing import Final

from ottla.handlers.api import Api, ColdApi, HotApi
from ottla.handlers.fetch import handle_fetch
from ottla.handlers.lazy_imports import lazy_imports_of
from ottla.handlers.metadata_fetch import handle_only_metadata_fetch
from ottla.handlers.offset_commit import handle_offset_commit
from ottla.handlers.produce import handle_produce

with lazy_imports_of("ottla.handlers"):
    from ottla.handlers import (
        add_offsets_to_txn,
        add_partitions_to_txn,
        add_raft_voter,
        allocate_producer_ids,
        alter_client_quotas,
        alter_configs,
        alter_partition,
        alter_partition_reassignments,
        alter_replica_log_dirs,
        alter_share_group_offsets,
        alter_user_scram_credentials,
        api_versions,
        assign_replicas_to_dirs,
        begin_quorum_epoch,
        broker_heartbeat,
        broker_registration,
        consumer_group_describe,
        consumer_group_heartbeat,
        create_acls,
        create_delegation_token,
        create_partitions,
        create_topics,
        delete_acls,
        delete_groups,
        delete_records,
        delete_share_group_offsets,
        delete_share_group_state,
        delete_topics,
        delivery_acknowledge,
        describe_acls,
        describe_client_quotas,
        describe_cluster,
        describe_configs,
        describe_delegation_token,
        describe_groups,
        describe_log_dirs,
        describe_offset_times,
        describe_producers,
        describe_quorum,
        describe_share_group_offsets,
        describe_topic_partitions,
        describe_transactions,
        describe_user_scram_credentials,
        elect_leaders,
        end_quorum_epoch,
        end_txn,
        envelope,
        expire_delegation_token,
        fetch_snapshot,
        find_coordinator,
        get_telemetry_subscriptions,
        heartbeat,
        import_records,
        incremental_alter_configs,
        init_producer_id,
        initialize_share_group_state,
        join_group,
        leave_group,
        list_config_resources,
        list_groups,
        list_offsets,
        list_partition_reassignments,
        list_transactions,
        metadata,
        offset_delete,
        offset_fetch,
        offset_for_leader_epoch,
        push_telemetry,
        read_share_group_state,
        read_share_group_state_summary,
        remove_raft_voter,
        renew_delegation_token,
        sasl_authenticate,
        sasl_handshake,
        share_acknowledge,
        share_fetch,
        share_group_describe,
        share_group_heartbeat,
        streams_group_describe,
        streams_group_heartbeat,
        sync_group,
        txn_offset_commit,
        unregister_broker,
        update_features,
        update_raft_voter,
        vote,
        write_share_group_state,
        write_txn_markers,
    )

# Requests of other nodes, which share a connection and do not wait for each other. A client's
# requests are already in order on the node that received them.
_QUORUM_KEYS: Final = frozenset({52, 53, 54, 59, 82})
_ENVELOPE_KEYS: Final = frozenset({58})
_SHARE_STATE_KEYS: Final = frozenset({83, 84, 85, 86, 87})
# A gateway represents many consumers on one connection, which do not wait for each other.
_DELIVERY_KEYS: Final = frozenset({10_000})
# Like a produce behind a produce: the next goes behind it, or is rejected if it does not follow.
_IMPORT_KEYS: Final = frozenset({10_002})


_APIS: Final[tuple[Api, ...]] = (
    HotApi(0, "Produce", 3, 13, handle_produce, claimed_low=0),
    HotApi(1, "Fetch", 4, 18, handle_fetch, claimed_low=4),
    ColdApi(2, "ListOffsets", 1, 11, list_offsets),
    ColdApi(3, "Metadata", 0, 13, metadata),
    HotApi(8, "OffsetCommit", 2, 10, handle_offset_commit, claimed_low=2),
    ColdApi(9, "OffsetFetch", 1, 10, offset_fetch),
    ColdApi(10, "FindCoordinator", 0, 6, find_coordinator),
    ColdApi(11, "JoinGroup", 0, 9, join_group),
    ColdApi(12, "Heartbeat", 0, 4, heartbeat),
    ColdApi(13, "LeaveGroup", 0, 5, leave_group),
    ColdApi(14, "SyncGroup", 0, 5, sync_group),
    ColdApi(15, "DescribeGroups", 0, 6, describe_groups),
    ColdApi(16, "ListGroups", 0, 5, list_groups),
    ColdApi(17, "SaslHandshake", 0, 1, sasl_handshake),
    ColdApi(18, "ApiVersions", 0, 5, api_versions),
    ColdApi(19, "CreateTopics", 2, 7, create_topics),
    ColdApi(20, "DeleteTopics", 1, 6, delete_topics),
    ColdApi(21, "DeleteRecords", 0, 2, delete_records),
    ColdApi(22, "InitProducerId", 0, 6, init_producer_id),
    ColdApi(23, "OffsetForLeaderEpoch", 2, 4, offset_for_leader_epoch),
    ColdApi(24, "AddPartitionsToTxn", 0, 5, add_partitions_to_txn),
    ColdApi(25, "AddOffsetsToTxn", 0, 4, add_offsets_to_txn),
    ColdApi(26, "EndTxn", 0, 5, end_txn),
    ColdApi(27, "WriteTxnMarkers", 1, 2, write_txn_markers),
    ColdApi(28, "TxnOffsetCommit", 0, 6, txn_offset_commit),
    ColdApi(29, "DescribeAcls", 1, 3, describe_acls),
    ColdApi(30, "CreateAcls", 1, 3, create_acls),
    ColdApi(31, "DeleteAcls", 1, 3, delete_acls),
    ColdApi(32, "DescribeConfigs", 1, 4, describe_configs),
    ColdApi(33, "AlterConfigs", 0, 2, alter_configs),
    ColdApi(34, "AlterReplicaLogDirs", 1, 2, alter_replica_log_dirs),
    ColdApi(35, "DescribeLogDirs", 1, 5, describe_log_dirs),
    ColdApi(36, "SaslAuthenticate", 0, 2, sasl_authenticate),
    ColdApi(37, "CreatePartitions", 0, 3, create_partitions),
    ColdApi(38, "CreateDelegationToken", 1, 3, create_delegation_token),
    ColdApi(39, "RenewDelegationToken", 1, 2, renew_delegation_token),
    ColdApi(40, "ExpireDelegationToken", 1, 2, expire_delegation_token),
    ColdApi(41, "DescribeDelegationToken", 1, 3, describe_delegation_token),
    ColdApi(42, "DeleteGroups", 0, 2, delete_groups),
    ColdApi(43, "ElectLeaders", 0, 2, elect_leaders),
    ColdApi(44, "IncrementalAlterConfigs", 0, 1, incremental_alter_configs),
    ColdApi(45, "AlterPartitionReassignments", 0, 1, alter_partition_reassignments),
    ColdApi(46, "ListPartitionReassignments", 0, 0, list_partition_reassignments),
    ColdApi(47, "OffsetDelete", 0, 0, offset_delete),
    ColdApi(48, "DescribeClientQuotas", 0, 1, describe_client_quotas),
    ColdApi(49, "AlterClientQuotas", 0, 1, alter_client_quotas),
    ColdApi(50, "DescribeUserScramCredentials", 0, 0, describe_user_scram_credentials),
    ColdApi(51, "AlterUserScramCredentials", 0, 0, alter_user_scram_credentials),
    ColdApi(52, "Vote", 0, 2, vote, _QUORUM_KEYS),
    ColdApi(53, "BeginQuorumEpoch", 0, 1, begin_quorum_epoch, _QUORUM_KEYS),
    ColdApi(54, "EndQuorumEpoch", 0, 1, end_quorum_epoch, _QUORUM_KEYS),
    ColdApi(55, "DescribeQuorum", 0, 2, describe_quorum),
    ColdApi(56, "AlterPartition", 2, 3, alter_partition),
    ColdApi(57, "UpdateFeatures", 0, 2, update_features),
    ColdApi(58, "Envelope", 0, 0, envelope, _ENVELOPE_KEYS),
    ColdApi(59, "FetchSnapshot", 0, 1, fetch_snapshot, _QUORUM_KEYS),
    ColdApi(60, "DescribeCluster", 0, 2, describe_cluster),
    ColdApi(61, "DescribeProducers", 0, 0, describe_producers),
    ColdApi(62, "BrokerRegistration", 0, 4, broker_registration),
    ColdApi(63, "BrokerHeartbeat", 0, 2, broker_heartbeat),
    ColdApi(64, "UnregisterBroker", 0, 0, unregister_broker),
    ColdApi(65, "DescribeTransactions", 0, 0, describe_transactions),
    ColdApi(66, "ListTransactions", 0, 2, list_transactions),
    ColdApi(67, "AllocateProducerIds", 0, 0, allocate_producer_ids),
    ColdApi(68, "ConsumerGroupHeartbeat", 0, 1, consumer_group_heartbeat),
    ColdApi(69, "ConsumerGroupDescribe", 0, 1, consumer_group_describe),
    ColdApi(71, "GetTelemetrySubscriptions", 0, 0, get_telemetry_subscriptions),
    ColdApi(72, "PushTelemetry", 0, 0, push_telemetry),
    ColdApi(73, "AssignReplicasToDirs", 0, 0, assign_replicas_to_dirs),
    ColdApi(74, "ListConfigResources", 0, 1, list_config_resources),
    ColdApi(75, "DescribeTopicPartitions", 0, 0, describe_topic_partitions),
    ColdApi(76, "ShareGroupHeartbeat", 1, 1, share_group_heartbeat),
    ColdApi(77, "ShareGroupDescribe", 1, 1, share_group_describe),
    ColdApi(78, "ShareFetch", 1, 2, share_fetch),
    ColdApi(79, "ShareAcknowledge", 1, 2, share_acknowledge),
    ColdApi(83, "InitializeShareGroupState", 0, 0, initialize_share_group_state, _SHARE_STATE_KEYS),
    ColdApi(84, "ReadShareGroupState", 0, 0, read_share_group_state, _SHARE_STATE_KEYS),
    ColdApi(85, "WriteShareGroupState", 0, 1, write_share_group_state, _SHARE_STATE_KEYS),
    ColdApi(86, "DeleteShareGroupState", 0, 0, delete_share_group_state, _SHARE_STATE_KEYS),
    ColdApi(
        87, "ReadShareGroupStateSummary", 0, 1, read_share_group_state_summary, _SHARE_STATE_KEYS
    ),
    ColdApi(80, "AddRaftVoter", 0, 1, add_raft_voter),
    ColdApi(81, "RemoveRaftVoter", 0, 0, remove_raft_voter),
    ColdApi(82, "UpdateRaftVoter", 0, 0, update_raft_voter, _QUORUM_KEYS),
    ColdApi(88, "StreamsGroupHeartbeat", 0, 0, streams_group_heartbeat),
    ColdApi(89, "StreamsGroupDescribe", 0, 0, streams_group_describe),
    ColdApi(90, "DescribeShareGroupOffsets", 0, 1, describe_share_group_offsets),
    ColdApi(91, "AlterShareGroupOffsets", 0, 0, alter_share_group_offsets),
    ColdApi(92, "DeleteShareGroupOffsets", 0, 0, delete_share_group_offsets),
    ColdApi(10_000, "DeliveryAcknowledge", 0, 0, delivery_acknowledge, _DELIVERY_KEYS),
    ColdApi(10_001, "DescribeOffsetTimes", 0, 0, describe_offset_times),
    ColdApi(10_002, "ImportRecords", 0, 0, import_records, _IMPORT_KEYS),
)

API_TABLE: Final[dict[int, Api]] = {api.key: api for api in _APIS}

# Clients push their metrics only to a broker that announces these.
TELEMETRY_KEYS: Final = frozenset({71, 72})

# What other nodes need from one that starts and serves no clients yet. Clients get ApiVersions:
# some take a connection that closes before it for a broker too old to know it.
_EARLY_KEYS: Final = (18, 52, 53, 54, 55, 58, 59, 60, 80, 81, 82)
EARLY_API_TABLE: Final[dict[int, Api]] = {
    1: HotApi(1, "Fetch", 12, 18, handle_only_metadata_fetch, claimed_low=4),
    **{key: API_TABLE[key] for key in _EARLY_KEYS},
}
