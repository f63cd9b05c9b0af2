"""The APIs that are served; ApiVersions answers from this table.

Requests of one connection are handled in their order. Where a handler does not answer at once, what
comes next waits until it has, unless the two cannot be told apart by their order: a produce behind
a produce, a commit of offsets behind another. `Fetch`, which waits for data, holds up what is
behind it, as in Kafka.

A handler module is imported when its API is first called: a broker starts in the time that it takes
to import everything, and most brokers never see most APIs.
"""

import functools
import importlib
from typing import Any, Final

from ottla.handlers.api import Api, ColdApi, HotApi
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.fetch import handle_fetch
from ottla.handlers.metadata_fetch import handle_only_metadata_fetch
from ottla.handlers.offset_commit import handle_offset_commit
from ottla.handlers.produce import handle_produce
from ottla.network.session import NOBODY, Overtakers
from ottla.protocol.errors import ApiError

# Requests of other nodes, which share a connection and do not wait for each other. What a client
# asked for is in order already on the node that it asked.
_QUORUM_KEYS: Final = frozenset({52, 53, 54, 59, 82})
_ENVELOPE_KEYS: Final = frozenset({58})
_SHARE_STATE_KEYS: Final = frozenset({83, 84, 85, 86, 87})
# A gateway speaks for many consumers on one connection, which do not wait for each other.
_DELIVERY_KEYS: Final = frozenset({10_000})


def _cold(key: int, module: str, low: int, high: int, overtakers: Overtakers = NOBODY) -> ColdApi:
    """The API of `ottla.handlers.<module>`, with its functions handle_<module> and error_response.

    The name is the module's in Kafka's spelling: `list_offsets` is ListOffsets.
    """

    @functools.cache
    def function(name: str) -> Any:
        return getattr(importlib.import_module(f"ottla.handlers.{module}"), name)

    def handle(broker: Broker, context: RequestContext, request: object) -> object:
        return function(f"handle_{module}")(broker, context, request)

    def error_response(request: object, error: ApiError) -> object:
        return function("error_response")(request, error)

    name = module.title().replace("_", "")
    return ColdApi(key, name, low, high, handle, error_response, overtakers)


_APIS: Final[tuple[Api, ...]] = (
    HotApi(0, "Produce", 3, 13, handle_produce, claimed_low=0),
    HotApi(1, "Fetch", 4, 18, handle_fetch, claimed_low=4),
    _cold(2, "list_offsets", 1, 11),
    _cold(3, "metadata", 0, 13),
    HotApi(8, "OffsetCommit", 2, 10, handle_offset_commit, claimed_low=2),
    _cold(9, "offset_fetch", 1, 10),
    _cold(10, "find_coordinator", 0, 6),
    _cold(11, "join_group", 0, 9),
    _cold(12, "heartbeat", 0, 4),
    _cold(13, "leave_group", 0, 5),
    _cold(14, "sync_group", 0, 5),
    _cold(15, "describe_groups", 0, 6),
    _cold(16, "list_groups", 0, 5),
    _cold(17, "sasl_handshake", 0, 1),
    _cold(18, "api_versions", 0, 4),
    _cold(19, "create_topics", 2, 7),
    _cold(20, "delete_topics", 1, 6),
    _cold(21, "delete_records", 0, 2),
    _cold(22, "init_producer_id", 0, 6),
    _cold(23, "offset_for_leader_epoch", 2, 4),
    _cold(24, "add_partitions_to_txn", 0, 5),
    _cold(25, "add_offsets_to_txn", 0, 4),
    _cold(26, "end_txn", 0, 5),
    _cold(27, "write_txn_markers", 1, 2),
    _cold(28, "txn_offset_commit", 0, 5),
    _cold(32, "describe_configs", 1, 4),
    _cold(33, "alter_configs", 0, 2),
    _cold(35, "describe_log_dirs", 1, 5),
    _cold(36, "sasl_authenticate", 0, 2),
    _cold(37, "create_partitions", 0, 3),
    _cold(42, "delete_groups", 0, 2),
    _cold(43, "elect_leaders", 0, 2),
    _cold(44, "incremental_alter_configs", 0, 1),
    _cold(45, "alter_partition_reassignments", 0, 1),
    _cold(46, "list_partition_reassignments", 0, 0),
    _cold(47, "offset_delete", 0, 0),
    _cold(50, "describe_user_scram_credentials", 0, 0),
    _cold(51, "alter_user_scram_credentials", 0, 0),
    _cold(52, "vote", 0, 2, _QUORUM_KEYS),
    _cold(53, "begin_quorum_epoch", 0, 1, _QUORUM_KEYS),
    _cold(54, "end_quorum_epoch", 0, 1, _QUORUM_KEYS),
    _cold(55, "describe_quorum", 0, 2),
    _cold(56, "alter_partition", 2, 3),
    _cold(57, "update_features", 0, 2),
    _cold(58, "envelope", 0, 0, _ENVELOPE_KEYS),
    _cold(59, "fetch_snapshot", 0, 1, _QUORUM_KEYS),
    _cold(60, "describe_cluster", 0, 2),
    _cold(61, "describe_producers", 0, 0),
    _cold(62, "broker_registration", 0, 4),
    _cold(63, "broker_heartbeat", 0, 2),
    _cold(64, "unregister_broker", 0, 0),
    _cold(65, "describe_transactions", 0, 0),
    _cold(66, "list_transactions", 0, 2),
    _cold(67, "allocate_producer_ids", 0, 0),
    _cold(68, "consumer_group_heartbeat", 0, 1),
    _cold(69, "consumer_group_describe", 0, 1),
    _cold(73, "assign_replicas_to_dirs", 0, 0),
    _cold(74, "list_config_resources", 0, 1),
    _cold(75, "describe_topic_partitions", 0, 0),
    _cold(76, "share_group_heartbeat", 1, 1),
    _cold(77, "share_group_describe", 1, 1),
    _cold(78, "share_fetch", 1, 2),
    _cold(79, "share_acknowledge", 1, 2),
    _cold(83, "initialize_share_group_state", 0, 0, _SHARE_STATE_KEYS),
    _cold(84, "read_share_group_state", 0, 0, _SHARE_STATE_KEYS),
    _cold(85, "write_share_group_state", 0, 1, _SHARE_STATE_KEYS),
    _cold(86, "delete_share_group_state", 0, 0, _SHARE_STATE_KEYS),
    _cold(87, "read_share_group_state_summary", 0, 1, _SHARE_STATE_KEYS),
    _cold(80, "add_raft_voter", 0, 1),
    _cold(81, "remove_raft_voter", 0, 0),
    _cold(82, "update_raft_voter", 0, 0, _QUORUM_KEYS),
    _cold(90, "describe_share_group_offsets", 0, 1),
    _cold(91, "alter_share_group_offsets", 0, 0),
    _cold(92, "delete_share_group_offsets", 0, 0),
    _cold(10_000, "delivery_acknowledge", 0, 0, _DELIVERY_KEYS),
)

API_TABLE: Final[dict[int, Api]] = {api.key: api for api in _APIS}

# What other nodes need of one that starts, and does not serve clients yet. Clients get ApiVersions:
# some take a connection that closes before it for a broker too old to know it.
_EARLY_KEYS: Final = (18, 52, 53, 54, 55, 58, 59, 60, 80, 81, 82)
EARLY_API_TABLE: Final[dict[int, Api]] = {
    1: HotApi(1, "Fetch", 12, 18, handle_only_metadata_fetch, claimed_low=4),
    **{key: API_TABLE[key] for key in _EARLY_KEYS},
}
