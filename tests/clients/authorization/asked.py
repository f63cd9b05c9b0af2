"""The requests of the cases."""

from typing import Any
from uuid import UUID

from tests.clients.authorization.case import ANY, GROUP, LITERAL, TOPIC, TRANSACTION, UNKNOWN_ID
from tests.clients.authorization.entities import request
from tests.clients.requests import TIMEOUT, batch, milliseconds

PATIENCE = milliseconds(60_000)  # For a produce on a busy disk.


def produce(name: str, *, transactional: bool = False) -> Any:
    records = batch(b"v")
    if transactional:
        records = batch(b"v", producer_id=999, producer_epoch=0, transactional=True)
    data = {"name": name, "partition_data": [{"index": 0, "records": records}]}
    transaction = TRANSACTION if transactional else None
    return request(0, 9, acks=-1, timeout=PATIENCE, topic_data=[data], transactional_id=transaction)


def produce_by_id(topic_id: UUID) -> Any:
    data = {"topic_id": topic_id, "partition_data": [{"index": 0, "records": batch(b"v")}]}
    return request(0, 13, acks=-1, timeout=PATIENCE, topic_data=[data], transactional_id=None)


def fetch(**named: Any) -> Any:
    partition = {"partition": 0, "partition_max_bytes": 1000}
    version = 12 if "topic" in named else 13
    topics = [{**named, "partitions": [partition]}]
    return request(
        1, version, replica_id=-1, max_bytes=1000, session_epoch=-1, rack_id="", topics=topics
    )


def list_offsets(name: str) -> Any:
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    return request(2, 7, replica_id=-1, topics=[{"name": name, "partitions": [partition]}])


def metadata(*named: dict[str, Any], create: bool = False, operations: bool = False) -> Any:
    return request(
        3,
        12,
        topics=list(named) or None,
        allow_auto_topic_creation=create,
        include_topic_authorized_operations=operations,
    )


def offset_commit(name: str) -> Any:
    partition = {"partition_index": 0, "committed_offset": 1}
    topics = [{"name": name, "partitions": [partition]}]
    return request(8, 8, group_id=GROUP, generation_id_or_member_epoch=-1, topics=topics)


def offset_fetch(*names: str) -> Any:
    topics = [{"name": name, "partition_indexes": [0]} for name in names]
    return request(9, 8, groups=[{"group_id": GROUP, "topics": topics or None}])


def find_coordinator(key: str, key_type: int) -> Any:
    return request(10, 4, key_type=key_type, coordinator_keys=[key])


def create_topic(name: str) -> Any:
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1}]
    return request(19, 7, topics=topics, validate_only=True, timeout=TIMEOUT)


def delete_topic(**named: Any) -> Any:
    return request(20, 6, topics=[named], timeout=TIMEOUT)


def delete_topic_twice(name: str) -> Any:
    return request(20, 6, topics=[{"name": name}] * 2, timeout=TIMEOUT)


def delete_records(name: str) -> Any:
    topics = [{"name": name, "partitions": [{"partition_index": 0, "offset": 0}]}]
    return request(21, 2, topics=topics, timeout=TIMEOUT)


def add_partitions(name: str) -> Any:
    topics = [{"name": name, "partitions": [0]}]
    return request(
        24,
        3,
        v3_and_below_transactional_id=TRANSACTION,
        v3_and_below_producer_id=999,
        v3_and_below_topics=topics,
    )


def txn_offset_commit(name: str) -> Any:
    topics = [{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    return request(
        28, 3, transactional_id=TRANSACTION, group_id=GROUP, producer_id=999, topics=topics
    )


def describe_configs(resource_type: int, name: str) -> Any:
    return request(32, 4, resources=[{"resource_type": resource_type, "resource_name": name}])


def alter_configs(resource_type: int, name: str, *, incremental: bool = True) -> Any:
    resource = {"resource_type": resource_type, "resource_name": name}
    if incremental:
        return request(44, 1, resources=[resource], validate_only=True)
    return request(33, 2, resources=[resource], validate_only=True)


def offset_delete(name: str, group_id: str = GROUP) -> Any:
    topics = [{"name": name, "partitions": [{"partition_index": 0}]}]
    return request(47, 0, group_id=group_id, topics=topics)


def share_offsets(api_key: int, name: str, group_id: str = "s") -> Any:
    if api_key == 90:
        return request(
            90,
            0,
            groups=[{"group_id": group_id, "topics": [{"topic_name": name, "partitions": [0]}]}],
        )
    if api_key == 91:
        topics = [{"topic_name": name, "partitions": [{"partition_index": 0, "start_offset": 0}]}]
        return request(91, 0, group_id=group_id, topics=topics)
    return request(92, 0, group_id=group_id, topics=[{"topic_name": name}])


def share_fetch(topic_id: UUID) -> Any:
    return request(
        78,
        1,
        group_id="s",
        member_id=str(UUID(int=9)),
        share_session_epoch=0,
        max_bytes=1000,
        max_records=10,
        batch_size=10,
        topics=[{"topic_id": topic_id, "partitions": [{"partition_index": 0}]}],
    )


def share_acknowledge(topic_id: UUID) -> Any:
    batches = [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}]
    return request(
        79,
        1,
        group_id="s",
        member_id=str(UUID(int=9)),
        share_session_epoch=1,
        topics=[
            {
                "topic_id": topic_id,
                "partitions": [{"partition_index": 0, "acknowledgement_batches": batches}],
            }
        ],
    )


def follower_fetch() -> Any:
    topics = [{"topic": TOPIC, "partitions": [{"partition": 0, "partition_max_bytes": 1000}]}]
    return request(1, 12, replica_id=1, max_bytes=1000, session_epoch=-1, rack_id="", topics=topics)


def topic_partitions(*names: str) -> Any:
    return request(75, 0, topics=[{"name": name} for name in names], response_partition_limit=100)


def share_coordinator() -> Any:
    return request(10, 6, key_type=2, coordinator_keys=[f"{GROUP}:{UNKNOWN_ID}:0"])


def join_group() -> Any:
    protocols = [{"name": "range", "metadata": b""}]
    return request(
        11,
        9,
        group_id="j",
        session_timeout=milliseconds(30_000),
        rebalance_timeout=milliseconds(30_000),
        protocol_type="consumer",
        protocols=protocols,
    )


def sync_group() -> Any:
    return request(
        14, 5, group_id=GROUP, member_id="m", protocol_type="consumer", protocol_name="range"
    )


def describe_groups(api_key: int, version: int, field: str, name: str = GROUP) -> Any:
    return request(api_key, version, **{field: [name]}, include_authorized_operations=True)


def group_heartbeat(api_key: int, version: int, topic_name: str, group_id: str = "c") -> Any:
    more = {"rebalance_timeout": milliseconds(60_000), "topic_partitions": []}
    return request(
        api_key,
        version,
        group_id=group_id,
        member_id=str(UUID(int=9)),
        subscribed_topic_names=[topic_name],
        **(more if api_key == 68 else {}),
    )


def create_partitions() -> Any:
    return request(
        37,
        3,
        timeout=TIMEOUT,
        topics=[{"name": TOPIC, "count": 2, "assignments": None}],
        validate_only=True,
    )


def leader_epoch(name: str) -> Any:
    partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    return request(23, 4, replica_id=-2, topics=[{"topic": name, "partitions": [partition]}])


def describe_producers(name: str) -> Any:
    return request(61, 0, topics=[{"name": name, "partition_indexes": [0]}])


def init_producer_id(transactional_id: str | None) -> Any:
    return request(
        22,
        4,
        transactional_id=transactional_id,
        transaction_timeout=milliseconds(10_000),
        producer_id=-1,
        producer_epoch=-1,
    )


def add_offsets() -> Any:
    return request(25, 3, transactional_id=TRANSACTION, producer_id=999, group_id=GROUP)


def elect_leaders() -> Any:
    return request(43, 2, topic_partitions=[{"topic": TOPIC, "partitions": [0]}])


def alter_log_dirs() -> Any:
    topics = [{"name": TOPIC, "partitions": [0]}]
    return request(34, 2, dirs=[{"path": "/nowhere", "topics": topics}])


def reassign() -> Any:
    partition = {"partition_index": 0, "replicas": None}
    return request(45, 0, topics=[{"name": TOPIC, "partitions": [partition]}])


def describe_quorum() -> Any:
    topics = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    return request(55, 1, topics=topics)


ACL_FILTER = {
    "resource_type_filter": ANY,
    "resource_name_filter": "nothing",
    "pattern_type_filter": LITERAL,
    "operation": ANY,
    "permission_type": ANY,
}
ACL = {
    "resource_type": 2,
    "resource_name": "",
    "principal": "User:nobody",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
