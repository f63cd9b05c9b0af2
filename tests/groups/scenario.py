"""Scenarios as text: a command, a line of dashes, and its exact trace.

    join a                   JoinGroup; more words: instance=i topics=t,u protocols=range,sticky
    sync a b=0,1 a=2,3       SyncGroup; the leader gives partitions of `t` to clients by name
    heartbeat a              Heartbeat
    leave a                  LeaveGroup
    beat a owned=t-0,t-1     ConsumerGroupHeartbeat; more words: topics= regex= instance= epoch=
    commit a t-0=5           OffsetCommit, of client a; `-` is nobody
    offsets                  what a client would fetch
    groups                   ListGroups
    advance 3s               time passes (ms, s, m, d)
    partitions t 6           the topic has that many partitions now
    reload                   another coordinator takes over

The trace has a line per record of the log (`+`) and per reply (`<-`). Parked replies are traced
when they arrive. A client is a name; the runner remembers its member id, generation and epoch.
`tests.kits.scenarios` runs them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.groups.kit import ALL_GROUPS, Coordinator, Reply, subscription
from tests.kits.scenarios import TextScenario, duration_ms

from ottla.groups.absences import AbsenceKey, AbsenceValue
from ottla.groups.classic.records import GroupMetadataKey
from ottla.groups.consumer import records as consumer
from ottla.groups.consumer_protocol import parse_assignment, write_assignment
from ottla.groups.modern.reconciliation import MemberState
from ottla.groups.modern.records import TopicPartitions
from ottla.groups.offsets.records import OffsetCommitRecord
from ottla.groups.partitions import assignment_of, by_topic
from ottla.machine.record import Record
from ottla.protocol.errors import ApiError, ErrorCode


@dataclass
class Client:
    name: str
    member_id: str = ""
    generation: int = -1
    epoch: int = 0
    instance: str | None = None


class Scenario(TextScenario):
    def __init__(self) -> None:
        self.coordinator = Coordinator()
        self.clients: dict[str, Client] = {}
        self.parked: list[tuple[str, str, Reply]] = []

    def command(self, command: str) -> Iterator[str]:
        words = command.split()
        before = len(self.coordinator.log)
        try:
            trace = list(getattr(self, f"_on_{words[0]}")(*words[1:]))
        except ApiError as error:
            trace = [f"{words[1] if len(words) > 1 else '-'} <- {error.code.name}"]
        for record in self.coordinator.log[before:]:
            yield f"+ {_show(record)}"
        yield from trace
        yield from self._answered()

    def _answered(self) -> Iterator[str]:
        waiting, self.parked = self.parked, []
        for name, kind, reply in waiting:
            if reply.waits:
                self.parked.append((name, kind, reply))
            else:
                yield from self._tell(name, kind, reply)

    def _reply(self, name: str, kind: str, reply: Reply) -> Iterator[str]:
        if reply.waits:
            self.parked.append((name, kind, reply))
            yield f"{name} <- {kind} waits"
        else:
            yield from self._tell(name, kind, reply)

    def _tell(self, name: str, kind: str, reply: Reply) -> Iterator[str]:
        response, client = reply.value, self._client(name)
        if response.error_code is not ErrorCode.none:
            more = ""
            if response.error_code is ErrorCode.member_id_required:
                client.member_id = response.member_id
                more = f" {response.member_id}"
            yield f"{name} <- {kind} {response.error_code.name}{more}"
        elif kind == "join":
            client.member_id, client.generation = response.member_id, response.generation_id
            members = ",".join(member.member_id for member in response.members) or "-"
            yield (
                f"{name} <- join generation={response.generation_id} id={response.member_id}"
                f" leader={response.leader or '-'} members={members}"
            )
        elif kind == "sync":
            partitions = parse_assignment(response.assignment)
            topic_partitions = {
                (topic, index) for topic, found in partitions.items() for index in found
            }
            yield f"{name} <- sync {_topic_partitions(topic_partitions)}"
        else:
            yield f"{name} <- {kind} ok"

    def _client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client(name))

    # Commands.

    def _on_join(self, name: str, *words: str) -> Iterator[str]:
        options, client = _options(words), self._client(name)
        client.instance = options.get("instance", client.instance)
        names = options.get("protocols", "range").split(",")
        metadata = subscription(*options.get("topics", "t").split(","))
        reply = self.coordinator.join(
            client.member_id,
            instance=client.instance,
            client=name,
            protocols=dict.fromkeys(names, metadata),
        )
        yield from self._reply(name, "join", reply)

    def _on_sync(self, name: str, *words: str) -> Iterator[str]:
        client = self._client(name)
        assignments = {
            self._client(other).member_id: write_assignment(0, {"t": _indexes(partitions)})
            for other, partitions in _options(words).items()
        }
        reply = self.coordinator.sync(
            client.member_id, client.generation, assignments, instance=client.instance
        )
        yield from self._reply(name, "sync", reply)

    def _on_heartbeat(self, name: str) -> Iterator[str]:
        client = self._client(name)
        response = self.coordinator.heartbeat(
            client.member_id, client.generation, instance=client.instance
        )
        yield from self._tell(name, "heartbeat", Reply(response))

    def _on_leave(self, name: str) -> Iterator[str]:
        client = self._client(name)
        response = self.coordinator.leave((client.member_id, client.instance))
        yield from self._tell(name, "leave", Reply(response.members[0]))

    def _on_beat(self, name: str, *words: str) -> Iterator[str]:
        options, client = _options(words), self._client(name)
        client.instance = options.get("instance", client.instance)
        owned = options.get("owned")
        response = self.coordinator.beat(
            options.get("id", name),
            int(options.get("epoch", client.epoch)),
            topics=tuple(options["topics"].split(",")) if "topics" in options else None,
            regex=options.get("regex"),
            owned=None
            if owned is None
            else list(map(_topic_partition, filter(None, owned.split(",")))),
            instance=client.instance,
        )
        client.epoch = response.member_epoch
        assigned = self.coordinator.assigned(response)
        shown = "" if assigned is None else f" assigned={_topic_partitions(assigned)}"
        yield f"{name} <- beat epoch={response.member_epoch}{shown}"

    def _on_commit(self, name: str, *words: str) -> Iterator[str]:
        client = Client("-") if name == "-" else self._client(name)
        response = self.coordinator.commit(
            {
                _topic_partition(topic_partition): int(offset)
                for topic_partition, offset in _options(words).items()
            },
            member_id=client.member_id or ("" if name == "-" else name),
            generation=client.epoch or client.generation,
            instance=client.instance,
        )
        for topic in response:
            for partition, code in topic.partitions:
                yield f"{name} <- commit {topic.topic}-{partition} {code.name}"

    def _on_offsets(self) -> Iterator[str]:
        for (topic, partition), offset in self.coordinator.offsets().items():
            yield f"{topic}-{partition} = {offset}"

    def _on_groups(self) -> Iterator[str]:
        listed = self.coordinator.run(lambda _: self.coordinator.machine.list_groups(ALL_GROUPS))
        for group in listed.value:
            yield f"{group.group_id} {group.group_type} {group.group_state}"

    def _on_advance(self, duration: str) -> Iterator[str]:
        self.coordinator.advance(duration_ms(duration))
        yield from ()

    def _on_partitions(self, topic: str, count: str) -> Iterator[str]:
        topic_id, _ = self.coordinator.catalog.topics[topic]
        self.coordinator.catalog.topics[topic] = (topic_id, int(count))
        self.coordinator.catalog.topics_version += 1
        yield from ()

    def _on_reload(self) -> Iterator[str]:
        self.parked.clear()
        self.coordinator.reload()
        yield from ()


def _options(words: tuple[str, ...]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def _indexes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _topic_partition(text: str) -> tuple[str, int]:
    topic, _, partition = text.rpartition("-")
    return topic, int(partition)


def _topic_partitions(topic_partitions: set[tuple[str, int]]) -> str:
    return ",".join(f"{topic}-{partition}" for topic, partition in sorted(topic_partitions)) or "-"


def _topics(topics: Iterable[TopicPartitions | consumer.CurrentTopicPartitions]) -> str:
    names = {1: "t", 2: "u"}
    owned = assignment_of((topic.topic_id, topic.partitions) for topic in topics)
    return (
        ",".join(
            f"{names[topic_id.int]}-{partition}"
            for topic_id, partitions in by_topic(owned).items()
            for partition in partitions
        )
        or "-"
    )


def _show(record: object) -> str:
    if isinstance(record, OffsetCommitRecord):
        group, topic_partition, commit = record
        return f"offset {group} {topic_partition} = {commit.offset if commit else 'gone'}"
    assert isinstance(record, Record)
    value: Any = record.value
    match record.key:
        case GroupMetadataKey(group=group):
            if value is None:
                return f"group {group} gone"
            members = ",".join(member.member_id for member in value.members) or "-"
            return (
                f"group {group} generation={value.generation} protocol={value.protocol or '-'}"
                f" leader={value.leader or '-'} members={members}"
            )
        case consumer.ConsumerGroupMetadataKey(group_id=group):
            return f"epoch {group} {value.epoch if value else 'gone'}"
        case consumer.ConsumerGroupTargetAssignmentMetadataKey(group_id=group):
            return f"assignment-epoch {group} {value.assignment_epoch if value else 'gone'}"
        case consumer.ConsumerGroupMemberMetadataKey(member_id=member):
            return f"member {member} {_subscribed(value) if value else 'gone'}"
        case consumer.ConsumerGroupTargetAssignmentMemberKey(member_id=member):
            return f"target {member} {_topics(value.topic_partitions) if value else 'gone'}"
        case consumer.ConsumerGroupCurrentMemberAssignmentKey(member_id=member):
            return f"current {member} {_current(value) if value else 'gone'}"
        case consumer.ConsumerGroupRegularExpressionKey(regular_expression=expression):
            return f"expression {expression} {','.join(value.topics) if value else 'gone'}"
        case AbsenceKey(group_id=group):
            return f"absent {group} {_absent(value) if value else 'gone'}"
    raise AssertionError(record)


def _absent(value: AbsenceValue) -> str:
    return ",".join(f"{member.member_id}={member.left_ms / 1000:g}s" for member in value.members)


def _subscribed(value: consumer.ConsumerGroupMemberMetadataValue) -> str:
    parts = [f"topics={','.join(value.subscribed_topic_names) or '-'}"]
    if value.subscribed_topic_regex:
        parts.append(f"regex={value.subscribed_topic_regex}")
    if value.classic is not None:
        parts.append("classic")
    return " ".join(parts)


def _current(value: consumer.ConsumerGroupCurrentMemberAssignmentValue) -> str:
    revoking = value.partitions_pending_revocation
    return (
        f"epoch={value.member_epoch} {MemberState(value.state).name.lower()}"
        f" assigned={_topics(value.assigned_partitions)}"
        + (f" revoking={_topics(revoking)}" if revoking else "")
    )
