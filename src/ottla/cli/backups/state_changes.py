"""Gives a cluster what `cluster_state` has read of another one, or of an earlier time.

Each part is set as it was; nothing is removed. What fails is told in a note and does not keep the
rest from being set.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest
from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.static.primitive import i8

from ottla.cli.backups.cluster_state import ClusterState
from ottla.cli.groups.share_groups import share_offsets_request
from ottla.cli.quotas.set import quota_entry
from ottla.client.wire.cluster import Cluster, CoordinatorType, TopicPartition
from ottla.client.wire.configs import BROKER, GROUP, TOPIC, alter_request
from ottla.client.wire.errors import BrokerError, WireError
from ottla.client.wire.groups import commit_offsets
from ottla.protocol.errors import ErrorCode

_KINDS: Final = {TOPIC: "topic ", BROKER: "all brokers", GROUP: "group "}
_IMPORT = "record.import"


def apply_state(
    cluster: Cluster,
    state: ClusterState,
    ends: Mapping[TopicPartition, int],
    *,
    broker_configs: bool = False,
) -> list[str]:
    """What could not be set. `ends` are those of the partitions that are there now."""
    notes = list(state.notes)

    def attempt(what: str, change: Callable[..., None], *arguments: object) -> None:
        try:
            cluster.retry(partial(change, cluster, *arguments))
        except WireError as error:
            notes.append(f"{what}: {error}")

    for group, configs in state.group_configs.items():
        notes += _set_accepted(cluster, GROUP, group, configs)
    if broker_configs and state.broker_configs:
        notes += _set_accepted(cluster, BROKER, "", state.broker_configs)
    notes += apply_groups(cluster, state, ends)
    if state.acls:
        attempt("acls", _create_acls, state.acls)
    if state.quotas:
        attempt("quotas", _set_quotas, state.quotas)
    notes += [
        f"user {each['user']} ({each['mechanism']}) must be added again with a password:"
        " clusters do not reveal passwords"
        for each in state.users
    ]
    return notes


def apply_groups(
    cluster: Cluster, state: ClusterState, ends: Mapping[TopicPartition, int]
) -> list[str]:
    """Of partitions that are there, and not past their ends."""
    notes = []
    for kind, groups, commit in (
        ("group", state.groups, _commit),
        ("share group", state.share_groups, _alter_share_offsets),
    ):
        for group, offsets in groups.items():
            kept = [
                [topic, partition, min(offset, ends[TopicPartition(topic, partition)]), *rest]
                for topic, partition, offset, *rest in offsets
                if TopicPartition(topic, partition) in ends
            ]
            try:
                if kept:
                    cluster.retry(partial(commit, cluster, group, kept))
            except WireError as error:
                notes.append(f"{kind} {group}: {error}")
    return notes


def _set_accepted(cluster: Cluster, kind: int, name: str, values: Mapping[str, str]) -> list[str]:
    """Notes of what could not be set. A request with one refused value sets none of them."""

    def problem(some: Mapping[str, str]) -> WireError | None:
        try:
            cluster.retry(partial(set_values, cluster, kind, name, some))
        except WireError as error:
            return error
        return None

    whole = problem(values)
    if whole is None or whole.may_pass:
        return [] if whole is None else [str(whole)]
    problems = (problem({key: value}) for key, value in values.items())
    return [str(each) for each in problems if each is not None]


def set_values(cluster: Cluster, kind: int, name: str, values: Mapping[str, str]) -> None:
    request = alter_request({(kind, name): values})
    what = f"{', '.join(values)} of {_KINDS[kind]}{name}"
    for result in cluster.controller().call(request).responses:
        _check(result.error_code, what, result.error_message)


def close_import(cluster: Cluster, topic: str) -> None:
    cluster.retry(lambda: set_values(cluster, TOPIC, topic, {_IMPORT: "closed"}))


def _commit(cluster: Cluster, group: str, offsets: Sequence[list[Any]]) -> None:
    """Without the leader epochs, which are another cluster's."""
    committed = {TopicPartition(topic, index): offset for topic, index, offset, _ in offsets}
    metadata = {TopicPartition(topic, index): note for topic, index, _, note in offsets}
    commit_offsets(cluster, group, committed, metadata)


def _alter_share_offsets(cluster: Cluster, group: str, offsets: Iterable[list[Any]]) -> None:
    request = share_offsets_request(
        group, ((topic, index, offset) for topic, index, offset in offsets)
    )
    altered = cluster.coordinator(CoordinatorType.GROUP, group).call(request)
    _check(altered.error_code, "positions", altered.error_message)
    for answered in altered.responses:
        for each in answered.partitions:
            topic_partition = f"{answered.topic_name}-{each.partition_index}"
            _check(each.error_code, topic_partition, each.error_message)


def _create_acls(cluster: Cluster, acls: Iterable[list[Any]]) -> None:
    request = CreateAclsRequest(
        creations=tuple(
            AclCreation(
                resource_type=i8(resource_type),
                resource_name=name,
                resource_pattern_type=i8(pattern_type),
                principal=principal,
                host=host,
                operation=i8(operation),
                permission_type=i8(permission),
            )
            for resource_type, name, pattern_type, principal, host, operation, permission in acls
        )
    )
    for result in cluster.controller().call(request).results:
        _check(result.error_code, "an acl", result.error_message)


def _set_quotas(cluster: Cluster, quotas: Iterable[Mapping[str, Any]]) -> None:
    entries = (quota_entry(quota["entity"], quota["values"]) for quota in quotas)
    request = AlterClientQuotasRequest(entries=tuple(entries), validate_only=False)
    for entry in cluster.controller().call(request).entries:
        _check(entry.error_code, "a quota", entry.error_message)


def _check(code: ErrorCode, what: str, message: str | None) -> None:
    if code is not ErrorCode.none:
        raise BrokerError(code, f"{what} ({message})" if message else what)
