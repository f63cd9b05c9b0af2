"""Scenarios as text: a command, a line of dashes, and its exact trace.

    brokers 1 2 3 racks=a,b,c     they register, and their first heartbeats unfence them
    register 1 clean              a new process of broker 1 registers; after a clean stop, or not;
                                  `disk=2` is another disk than that of its last registration
    heartbeat 1 shut-down         also `fence`, and `behind`: it has not read its registration yet
    silence 1                     it sends no heartbeats any more; `wake 1` ends that
    advance 2s                    time passes (ms, s, m); all but the silent ones send heartbeats
    pause 2s                      time passes for the controller while it does nothing
    create orders 1,2,3 2,3,1     a topic with these replicas; more words are configs: key=value
    config orders key=value       of a topic, or of all brokers: `config brokers key=value`
    isr orders-0 1,2              the leader of the partition says who is in sync
    elect preferred orders-0      or unclean; without a partition everywhere
    reassign orders-0 4,2,3       or `reassign orders-0 cancel`
    reassignments                 lists those that go on
    unregister 1
    reload                        another controller takes over

The trace has a line per record (`+`) and per reply (`<-`). Heartbeats that only say that a broker
is alive leave no trace.
`tests.kits.scenarios` runs them.
"""

from collections.abc import Iterator
from typing import Any

from kio.schema.alter_partition.v3 import request as alter_partition
from kio.schema.alter_partition_reassignments.v1 import request as reassignment
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.types import BrokerId, TopicName
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.static.primitive import i8, i32
from tests.controller.cluster import Cluster
from tests.controller.test_configs import increments
from tests.controller.test_topics import creation, topic
from tests.kits.scenarios import TextScenario, duration_ms

from ottla.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE
from ottla.controller.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from ottla.protocol.errors import ApiError, ErrorCode

_HEARTBEAT_MS = 300


class Scenario(TextScenario):
    def __init__(self) -> None:
        self.cluster = Cluster(brokers=0)
        self.cluster.machine.on_loaded(0)
        self.silent: set[int] = set()
        self.lives: dict[int, int] = {}  # Number of starts of each broker.

    def command(self, command: str) -> Iterator[str]:
        name, *words = command.split()
        before = len(self.cluster.records)
        try:
            trace = list(getattr(self, f"_on_{name}")(*words))
        except ApiError as error:
            trace = [f"<- {error.code.name}"]
        for record in self.cluster.records[before:]:
            yield f"+ {self._show(record)}"
        yield from trace

    # Commands.

    def _on_brokers(self, *words: str) -> Iterator[str]:
        ids = [int(word) for word in words if word.isdecimal()]
        racks = _options(words).get("racks", "").split(",")
        for position, broker_id in enumerate(ids):
            rack = racks[position] if len(racks) > position else ""
            self._start(broker_id, rack=rack or None, log_dirs=(1,))
            self.cluster.heartbeat(broker_id)
        yield from ()

    def _on_register(self, word: str, *words: str) -> Iterator[str]:
        broker_id, options = int(word), _options(words)
        present = self.cluster.image.brokers.get(broker_id)
        previous = present.broker_epoch if present is not None and "clean" in options else -1
        response = self._start(
            broker_id,
            previous_broker_epoch=previous,
            log_dirs=(int(options.get("disk", "1")),),
        )
        yield f"<- epoch {response.broker_epoch}"

    def _start(self, broker_id: int, **fields: Any) -> Any:
        life = self.lives.get(broker_id, 0) + 1
        response = self.cluster.register(broker_id, incarnation=100 * broker_id + life, **fields)
        self.lives[broker_id] = life
        self.silent.discard(broker_id)
        return response

    def _on_heartbeat(self, word: str, *words: str) -> Iterator[str]:
        response = self.cluster.heartbeat(
            int(word),
            want_fence="fence" in words,
            want_shut_down="shut-down" in words,
            **({"current_metadata_offset": 0} if "behind" in words else {}),
        )
        states = ["fenced" if response.is_fenced else "active"]
        if response.should_shut_down:
            states.append("may stop")
        yield f"<- {', '.join(states)}"

    def _on_silence(self, word: str) -> Iterator[str]:
        self.silent.add(int(word))
        yield from ()

    def _on_wake(self, word: str) -> Iterator[str]:
        self.silent.discard(int(word))
        yield from ()

    def _on_advance(self, duration: str) -> Iterator[str]:
        end_ms = self.cluster.now_ms + duration_ms(duration)
        while self.cluster.now_ms < end_ms:
            self.cluster.advance(min(_HEARTBEAT_MS, end_ms - self.cluster.now_ms))
            for broker_id in sorted(self.cluster.image.brokers):
                if broker_id not in self.silent:
                    self.cluster.heartbeat(broker_id)
        yield from ()

    def _on_pause(self, duration: str) -> Iterator[str]:
        self.cluster.pause(duration_ms(duration))
        yield from ()

    def _on_create(self, name: str, *words: str) -> Iterator[str]:
        assignments = [_replicas(word) for word in words if "=" not in word]
        request = creation(
            topic(name, configs=_options(words, "="), assignments=dict(enumerate(assignments)))
        )
        (result,) = self.cluster.call(request).topics
        if result.error_code is not ErrorCode.none:
            yield f"<- {result.error_code.name}"

    def _on_config(self, name: str, *words: str) -> Iterator[str]:
        resource = (BROKER_RESOURCE, "") if name == "brokers" else (TOPIC_RESOURCE, name)
        changes = [(key, 0, value) for key, value in _options(words, "=").items()]
        request = increments(*changes, resource=resource)
        self.cluster.call(request)
        yield from ()

    def _on_isr(self, topic_partition: str, isr: str) -> Iterator[str]:
        name, index = _parse_topic_partition(topic_partition)
        partition = self.cluster.partition(name, index)
        brokers = self.cluster.image.brokers
        wanted = alter_partition.PartitionData(
            partition_index=i32(index),
            leader_epoch=partition.leader_epoch,
            new_isr_with_epochs=tuple(
                alter_partition.BrokerState(
                    broker_id=BrokerId(broker_id), broker_epoch=brokers[broker_id].broker_epoch
                )
                for broker_id in _replicas(isr)
            ),
            partition_epoch=partition.partition_epoch,
        )
        response = self.cluster.call(
            alter_partition.AlterPartitionRequest(
                broker_id=partition.leader,
                broker_epoch=brokers[partition.leader].broker_epoch,
                topics=(
                    alter_partition.TopicData(topic_id=partition.topic_id, partitions=(wanted,)),
                ),
            )
        )
        yield f"<- {response.topics[0].partitions[0].error_code.name}"

    def _on_elect(self, kind: str, *topic_partitions: str) -> Iterator[str]:
        request = ElectLeadersRequest(
            election_type=i8({"preferred": 0, "unclean": 1}[kind]),
            topic_partitions=tuple(
                TopicPartitions(topic=TopicName(name), partitions=(i32(index),))
                for name, index in map(_parse_topic_partition, topic_partitions)
            )
            if topic_partitions
            else None,
        )
        response = self.cluster.call(request)
        for result in response.replica_election_results:
            for partition in result.partition_result:
                topic_partition = f"{result.topic}-{partition.partition_id}"
                yield f"<- {topic_partition} {partition.error_code.name}"

    def _on_reassign(self, topic_partition: str, replicas: str) -> Iterator[str]:
        name, index = _parse_topic_partition(topic_partition)
        target = reassignment.ReassignablePartition(
            partition_index=i32(index),
            replicas=None if replicas == "cancel" else tuple(map(BrokerId, _replicas(replicas))),
        )
        request = reassignment.AlterPartitionReassignmentsRequest(
            topics=(reassignment.ReassignableTopic(name=TopicName(name), partitions=(target,)),)
        )
        response = self.cluster.call(request)
        yield f"<- {response.responses[0].partitions[0].error_code.name}"

    def _on_reassignments(self) -> Iterator[str]:
        request = ListPartitionReassignmentsRequest(topics=None)
        response = self.cluster.call(request)
        for each in response.topics:
            for partition in each.partitions:
                yield (
                    f"<- {each.name}-{partition.partition_index} {_list(partition.replicas)}"
                    f" adding {_list(partition.adding_replicas)}"
                    f" removing {_list(partition.removing_replicas)}"
                )

    def _on_unregister(self, word: str) -> Iterator[str]:
        request = UnregisterBrokerRequest(broker_id=BrokerId(int(word)))
        response = self.cluster.call(request)
        yield f"<- {response.error_code.name}"

    def _on_reload(self) -> Iterator[str]:
        self.cluster.reload()
        yield from ()

    # The trace.

    def _show(self, record: object) -> str:
        match record:
            case RegisterBrokerRecord():
                return f"broker {record.broker_id} registered, epoch {record.broker_epoch}"
            case BrokerRegistrationChangeRecord(fenced=0):
                return f"broker {record.broker_id} in controlled shutdown"
            case BrokerRegistrationChangeRecord():
                return f"broker {record.broker_id} {'' if record.fenced > 0 else 'un'}fenced"
            case UnregisterBrokerRecord():
                return f"broker {record.broker_id} unregistered"
            case TopicRecord():
                return f"topic {record.name}"
            case ConfigRecord():
                return f"config {record.resource_name or 'brokers'} {record.name}={record.value}"
            case PartitionRecord() | PartitionChangeRecord():
                name = self.cluster.image.topic_name(record.topic_id)
                return f"{name}-{record.partition_id} {_fields(record)}"
        raise AssertionError(record)


def _fields(record: PartitionRecord | PartitionChangeRecord) -> str:
    shown = []
    if record.leader != -2:
        shown.append(f"leader={record.leader}")
    for title, replicas in (
        ("isr", record.isr),
        ("eligible", record.eligible_leader_replicas),
        ("last-known", record.last_known_elr),
        ("replicas", record.replicas),
        ("adding", record.adding_replicas),
        ("removing", record.removing_replicas),
    ):
        if replicas is not None and (replicas or isinstance(record, PartitionChangeRecord)):
            shown.append(f"{title}={_list(replicas)}")
    if isinstance(record, PartitionChangeRecord) and record.leader_recovery_state >= 0:
        shown.append("recovering" if record.leader_recovery_state else "recovered")
    return " ".join(shown)


def _options(words: tuple[str, ...], separator: str = "") -> dict[str, str]:
    """`key=value` words, and single words if no separator is asked for."""
    return dict(word.partition("=")[::2] for word in words if separator in word)


def _parse_topic_partition(text: str) -> tuple[str, int]:
    name, _, index = text.rpartition("-")
    return name, int(index)


def _replicas(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _list(replicas: Any) -> str:
    return ",".join(map(str, replicas)) or "none"
