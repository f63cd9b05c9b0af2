"""Changes the protocol of a group that has members.

Upgrade: the first member of the consumer protocol joins a classic group. Its members continue in
the consumer group and are served as before until each is replaced by one with the new protocol.

Downgrade: the last member of the consumer protocol has left, and those of the classic protocol
become a classic group again.
"""

from dataclasses import replace

from ottla.groups.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup
from ottla.groups.classic.member import ClassicMember
from ottla.groups.classic.rebalance import ClassicRebalance
from ottla.groups.classic.responses import join_error, sync_error
from ottla.groups.classic.state import ClassicState
from ottla.groups.consumer.group import ConsumerGroup, Draft
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.records import ClassicMemberMetadata, ClassicProtocol
from ottla.groups.consumer_protocol import (
    Partitions,
    parse_assignment,
    parse_subscription,
    write_assignment,
)
from ottla.groups.operation_effects import Effects
from ottla.groups.partitions import Assignment, assignment_of, by_topic
from ottla.groups.state import CoordinatorState
from ottla.machine.catalog import TopicCatalog
from ottla.machine.record import Record
from ottla.protocol.errors import ApiError, ErrorCode


class Migration:
    def __init__(self, state: CoordinatorState, rebalance: ClassicRebalance) -> None:
        self._state = state
        self._rebalance = rebalance

    # Classic to consumer.

    def upgraded(self, classic: ClassicGroup) -> Draft:
        """Raises ApiError if the group cannot be upgraded."""
        policy = self._state.config.consumer_migration_policy
        if (
            policy not in {"bidirectional", "upgrade"}
            or not classic.uses_consumer_protocol
            or len(classic.members) > self._state.config.consumer_max_size
        ):
            raise _not_a_consumer_group(classic.group_id)
        try:
            members = [self._to_consumer(classic, each) for each in classic.members.values()]
        except ValueError:
            raise _not_a_consumer_group(classic.group_id) from None
        return _draft_of(classic, members)

    def _to_consumer(self, classic: ClassicGroup, member: ClassicMember) -> ConsumerMember:
        protocol = classic.protocol or member.protocols[0][0]
        subscription = parse_subscription(member.metadata(protocol))
        assigned = to_ids(parse_assignment(member.assignment), self._state.catalog)
        # A cooperative member that has not fetched its last assignment still has what it claimed.
        claimed = to_ids(subscription.owned_partitions, self._state.catalog)
        return ConsumerMember(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            rack_id=subscription.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=tuple(sorted(set(subscription.topics))),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=ClassicMemberMetadata(
                session_timeout_ms=member.session_timeout_ms,
                supported_protocols=tuple(
                    ClassicProtocol(name=name, metadata=metadata)
                    for name, metadata in member.protocols
                ),
            ),
            epoch=classic.generation,
            previous_epoch=classic.generation,
            assigned=assigned | claimed,
        )

    def close(self, classic: ClassicGroup, effects: Effects) -> None:
        """Waiting members must rejoin; the group itself goes when its tombstone is replayed."""
        again = ErrorCode.rebalance_in_progress
        for member in classic.members.values():
            if member.awaiting_join is not None:
                effects.answer(member.awaiting_join, join_error(again, member.member_id))
            if member.awaiting_sync is not None:
                effects.answer(member.awaiting_sync, sync_error(again))
        self._rebalance.abandon(classic)

    # Consumer to classic.

    def maybe_downgrade(self, draft: Draft, now_ms: int, effects: Effects) -> bool:
        """Whether it was done; then the records are in `effects`.

        Members that are all at their target continue with the epoch as their generation. Otherwise
        each of them must rejoin, so the generation is one that none of them has: this also works
        for a coordinator that takes over and knows only the record.
        """
        group = draft.group
        policy = self._state.config.consumer_migration_policy
        if (
            group.is_empty
            or not all(member.uses_classic_protocol for member in group.members.values())
            or policy not in {"bidirectional", "downgrade"}
            or len(group.members) > self._state.config.max_size
        ):
            return False
        members = group.members.values()
        reconciled = all(member.is_reconciled_to(group.epoch) for member in members)
        is_taken = any(member.epoch == group.epoch for member in members)
        classic = self._to_classic(group, now_ms)
        classic.generation = group.epoch + (is_taken and not reconciled)
        draft.write(*group.tombstones())
        effects.records.extend(draft.records)
        effects.records.append(classic.to_record())
        self._state.classic_groups[group.group_id] = classic
        for member in classic.members.values():
            self._rebalance.keep_alive(classic, member, now_ms)
        if not reconciled:
            self._rebalance.prepare(classic, now_ms, effects)
        return True

    def _to_classic(self, group: ConsumerGroup, now_ms: int) -> ClassicGroup:
        classic = ClassicGroup(group.group_id, now_ms)
        for member in group.members.values():
            classic.add(_to_classic_member(member), CONSUMER_PROTOCOL_TYPE, now_ms)
        classic.state = ClassicState.STABLE
        classic.protocol = classic.select_protocol()
        classic.refresh_subscription()
        for member_id, classic_member in classic.members.items():
            version = parse_subscription(classic_member.metadata(classic.protocol)).version
            names = to_names(group.members[member_id].assigned, self._state.catalog)
            classic_member.assignment = write_assignment(version, names)
        return classic


def _not_a_consumer_group(group_id: str) -> ApiError:
    return ApiError(ErrorCode.group_id_not_found, f"group {group_id} is not a consumer group")


def _draft_of(classic: ClassicGroup, members: list[ConsumerMember]) -> Draft:
    """A partition that was assigned to two classic members stays with the first."""
    draft = Draft(ConsumerGroup(classic.group_id), classic.tombstones())
    epoch = classic.generation
    draft.write(*(draft.group.member_record(member) for member in members))
    draft.write(draft.group.epoch_record(epoch, 0))
    records: list[Record] = []
    taken: set[object] = set()
    for member in members:
        assigned: Assignment = frozenset(each for each in member.assigned if each not in taken)
        taken |= assigned
        draft.write(draft.group.target_record(member.member_id, assigned))
        records.append(draft.group.assignment_record(replace(member, assigned=assigned)))
    draft.write(draft.group.assignment_epoch_record(epoch, 0), *records)
    return draft


def _to_classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=tuple(
            (protocol.name, protocol.metadata) for protocol in member.classic.supported_protocols
        ),
    )


def to_ids(partitions: Partitions, catalog: TopicCatalog) -> Assignment:
    """Omits deleted topics."""
    return assignment_of((catalog.topic_id(name), indexes) for name, indexes in partitions.items())


def to_names(assignment: Assignment, catalog: TopicCatalog) -> Partitions:
    names = {}
    for topic_id, indexes in by_topic(assignment).items():
        name = catalog.topic_name(topic_id)
        if name is not None:
            names[name] = indexes
    return names
