"""Shape changes of messages between versions, beyond added fields.

`lift` gives what was read the newest shape, `project` gives what is written the old shape. Both
work on the values of one entity by field name. The values to lift include the fields of both
versions; those only in the old version are dropped afterwards. Entities in fields that only the old
version has are of the old version.

Nothing from kio is imported before a message needs it.
"""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from ottla.protocol.errors import ErrorCode

Values = dict[str, Any]
Rule = Callable[[Values, int], None]  # The version of the bytes.


class Shape(NamedTuple):
    until: int  # The last version of the old shape.
    lift: Rule
    project: Rule


def shape_of(wire: type) -> Shape | None:
    """None if matching fields by name is enough."""
    api, kind = _name_parts(wire)
    shape = _SHAPES.get(f"{api}.{kind}.{wire.__name__}")
    return shape if shape and wire.__version__ <= shape.until else None  # type: ignore[attr-defined]


def _name_parts(wire: type) -> tuple[str, str]:
    """The names of kio's modules are `kio.schema.<api>.v<version>.<kind>`."""
    names = wire.__module__.split(".")
    return (names[2], names[-1]) if names[0] == "kio" else ("", "")


def _only(items: Any, what: str) -> Any:
    if len(items) != 1:
        raise ValueError(f"this version has exactly one {what}, not {len(items)}")
    return items[0]


def _keep(_values: Values, _version: int) -> None:
    """In this direction the names are enough."""


def _lift_find_coordinator_request(values: Values, _version: int) -> None:
    values["coordinator_keys"] = (values["key"],)


def _project_find_coordinator_request(values: Values, _version: int) -> None:
    values["key"] = _only(values["coordinator_keys"], "key")


_COORDINATOR_FIELDS = ("error_code", "error_message", "node_id", "host", "port")


def _lift_find_coordinator_response(values: Values, _version: int) -> None:
    from kio.schema.find_coordinator.v6.response import Coordinator

    found = {name: values.get(name) for name in _COORDINATOR_FIELDS}
    values["coordinators"] = (Coordinator(key="", **found),)  # type: ignore[arg-type]


def _project_find_coordinator_response(values: Values, _version: int) -> None:
    coordinator = _only(values["coordinators"], "coordinator")
    values.update({name: getattr(coordinator, name) for name in _COORDINATOR_FIELDS})


def _lift_delete_topics_request(values: Values, _version: int) -> None:
    from kio.schema.delete_topics.v6.request import DeleteTopicState

    names = values["topic_names"]
    values["topics"] = tuple(DeleteTopicState(name=name, topic_id=None) for name in names)


def _project_delete_topics_request(values: Values, _version: int) -> None:
    values["topic_names"] = tuple(topic.name for topic in values["topics"])


def _lift_offset_fetch_request(values: Values, _version: int) -> None:
    from ottla.protocol.messages.offset_fetch import (
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopics,
    )

    topics = values["topics"]
    if topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(
                name=topic.name, topic_id=None, partition_indexes=topic.partition_indexes
            )
            for topic in topics
        )
    values["groups"] = (OffsetFetchRequestGroup(group_id=values["group_id"], topics=topics),)


def _project_offset_fetch_request(values: Values, _version: int) -> None:
    group = _only(values["groups"], "group")
    values.update(group_id=group.group_id, topics=group.topics)


def _lift_offset_fetch_response(values: Values, _version: int) -> None:
    from kio.schema.offset_fetch.v10.response import OffsetFetchResponsePartitions

    from ottla.protocol.messages.offset_fetch import (
        OffsetFetchResponseGroup,
        OffsetFetchResponseTopics,
    )

    topics = tuple(
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=None,
            partitions=tuple(
                OffsetFetchResponsePartitions(**asdict(partition)) for partition in topic.partitions
            ),
        )
        for topic in values["topics"]
    )
    error_code = values.get("error_code", ErrorCode.none)
    group = OffsetFetchResponseGroup(group_id="", topics=topics, error_code=error_code)  # type: ignore[arg-type]
    values["groups"] = (group,)


def _project_offset_fetch_response(values: Values, version: int) -> None:
    group = _only(values["groups"], "group")
    values.update(topics=group.topics, error_code=group.error_code)
    if version < 2 and group.error_code:
        # v1 can report the group's error only in each partition.
        values["topics"] = tuple(
            replace(
                topic,
                partitions=tuple(
                    replace(partition, error_code=partition.error_code or group.error_code)
                    for partition in topic.partitions
                ),
            )
            for topic in group.topics
        )


def _lift_leave_group_request(values: Values, _version: int) -> None:
    from kio.schema.leave_group.v5.request import MemberIdentity

    values["members"] = (MemberIdentity(member_id=values["member_id"]),)


def _project_leave_group_request(values: Values, _version: int) -> None:
    values["member_id"] = _only(values["members"], "member").member_id


def _project_leave_group_response(values: Values, _version: int) -> None:
    """The error of the single member is the group's error."""
    errors = (member.error_code for member in values["members"] if member.error_code)
    values["error_code"] = values["error_code"] or next(errors, ErrorCode.none)


def _lift_add_partitions_to_txn_request(values: Values, _version: int) -> None:
    from kio.schema.add_partitions_to_txn.v5.request import (
        AddPartitionsToTxnTopic,
        AddPartitionsToTxnTransaction,
    )

    transaction = AddPartitionsToTxnTransaction(
        transactional_id=values["v3_and_below_transactional_id"],
        producer_id=values["v3_and_below_producer_id"],
        producer_epoch=values["v3_and_below_producer_epoch"],
        topics=tuple(
            AddPartitionsToTxnTopic(**asdict(topic)) for topic in values["v3_and_below_topics"]
        ),
    )
    values["transactions"] = (transaction,)


def _project_add_partitions_to_txn_request(values: Values, _version: int) -> None:
    transaction = _only(values["transactions"], "transaction")
    values.update(
        v3_and_below_transactional_id=transaction.transactional_id,
        v3_and_below_producer_id=transaction.producer_id,
        v3_and_below_producer_epoch=transaction.producer_epoch,
        v3_and_below_topics=transaction.topics,
    )


def _lift_add_partitions_to_txn_response(values: Values, _version: int) -> None:
    from kio.schema.add_partitions_to_txn.v5.response import (
        AddPartitionsToTxnPartitionResult,
        AddPartitionsToTxnResult,
        AddPartitionsToTxnTopicResult,
    )

    topics = tuple(
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(**asdict(result))
                for result in topic.results_by_partition
            ),
        )
        for topic in values["results_by_topic_v3_and_below"]
    )
    result = AddPartitionsToTxnResult(transactional_id="", topic_results=topics)  # type: ignore[arg-type]
    values["results_by_transaction"] = (result,)


def _project_add_partitions_to_txn_response(values: Values, _version: int) -> None:
    result = _only(values["results_by_transaction"], "transaction")
    values["results_by_topic_v3_and_below"] = result.topic_results


def _lift_metadata_request(values: Values, _version: int) -> None:
    """v0 has no null: it requests all topics with an empty array."""
    values["topics"] = values["topics"] or None


def _lift_join_group_request(values: Values, _version: int) -> None:
    """v0 has a single timeout."""
    values["rebalance_timeout"] = values["session_timeout"]


def _project_api_versions_response(values: Values, _version: int) -> None:
    """Clients before v4 do not understand a feature whose lowest version is 0 (KIP-1022)."""
    features = values["supported_features"]
    values["supported_features"] = tuple(feature for feature in features if feature.min_version > 0)


def _lift_fetch_request(values: Values, _version: int) -> None:
    from kio.schema.fetch.v18.request import ReplicaState

    values["replica_state"] = ReplicaState(replica_id=values["replica_id"])


def _project_fetch_request(values: Values, _version: int) -> None:
    values["replica_id"] = values["replica_state"].replica_id


_UPGRADE, _SAFE_DOWNGRADE = 1, 2


def _lift_feature_update(values: Values, _version: int) -> None:
    values["upgrade_type"] = _SAFE_DOWNGRADE if values["allow_downgrade"] else _UPGRADE


def _project_feature_update(values: Values, _version: int) -> None:
    values["allow_downgrade"] = values["upgrade_type"] != _UPGRADE


def _lift_alter_partition(values: Values, _version: int) -> None:
    from kio.schema.alter_partition.v3.request import BrokerState

    values["new_isr_with_epochs"] = tuple(
        BrokerState(broker_id=broker_id) for broker_id in values["new_isr"]
    )


def _project_alter_partition(values: Values, _version: int) -> None:
    values["new_isr"] = tuple(broker.broker_id for broker in values["new_isr_with_epochs"])


def _lift_end_quorum_epoch(values: Values, _version: int) -> None:
    from kio.schema.end_quorum_epoch.v1.request import ReplicaInfo

    values["preferred_candidates"] = tuple(
        ReplicaInfo(candidate_id=candidate_id, candidate_directory_id=None)
        for candidate_id in values["preferred_successors"]
    )


def _project_end_quorum_epoch(values: Values, _version: int) -> None:
    candidates = values["preferred_candidates"]
    values["preferred_successors"] = tuple(candidate.candidate_id for candidate in candidates)


_SHAPES = {
    "add_partitions_to_txn.request.AddPartitionsToTxnRequest": Shape(
        3, _lift_add_partitions_to_txn_request, _project_add_partitions_to_txn_request
    ),
    "add_partitions_to_txn.response.AddPartitionsToTxnResponse": Shape(
        3, _lift_add_partitions_to_txn_response, _project_add_partitions_to_txn_response
    ),
    "alter_partition.request.PartitionData": Shape(
        2, _lift_alter_partition, _project_alter_partition
    ),
    "api_versions.response.ApiVersionsResponse": Shape(3, _keep, _project_api_versions_response),
    "delete_topics.request.DeleteTopicsRequest": Shape(
        5, _lift_delete_topics_request, _project_delete_topics_request
    ),
    "end_quorum_epoch.request.PartitionData": Shape(
        0, _lift_end_quorum_epoch, _project_end_quorum_epoch
    ),
    "fetch.request.FetchRequest": Shape(14, _lift_fetch_request, _project_fetch_request),
    "find_coordinator.request.FindCoordinatorRequest": Shape(
        3, _lift_find_coordinator_request, _project_find_coordinator_request
    ),
    "find_coordinator.response.FindCoordinatorResponse": Shape(
        3, _lift_find_coordinator_response, _project_find_coordinator_response
    ),
    "join_group.request.JoinGroupRequest": Shape(0, _lift_join_group_request, _keep),
    "leave_group.request.LeaveGroupRequest": Shape(
        2, _lift_leave_group_request, _project_leave_group_request
    ),
    "leave_group.response.LeaveGroupResponse": Shape(2, _keep, _project_leave_group_response),
    "metadata.request.MetadataRequest": Shape(0, _lift_metadata_request, _keep),
    "offset_fetch.request.OffsetFetchRequest": Shape(
        7, _lift_offset_fetch_request, _project_offset_fetch_request
    ),
    "offset_fetch.response.OffsetFetchResponse": Shape(
        7, _lift_offset_fetch_response, _project_offset_fetch_response
    ),
    "update_features.request.FeatureUpdateKey": Shape(
        0, _lift_feature_update, _project_feature_update
    ),
}
