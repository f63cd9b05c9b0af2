"""Consumer groups under honest clients, lost responses, crashes and changes of coordinator.

A client owns what it was last assigned until it has revoked it, and gives everything up when it is
fenced. Whatever happens, no two clients own the same partition, epochs only grow, acknowledged
commits stay, and in the end the remaining clients own every partition that one of them subscribes
to.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)
from kio.schema.consumer_group_describe.v1.response import DescribedGroup
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse
from tests.groups.kit import Coordinator

from ottla.groups.consumer.config import MEMBERSHIP, ConsumerConfig
from ottla.protocol.errors import ApiError, ErrorCode

TopicPartition = tuple[str, int]
SETTLING_ROUNDS = 8  # More than partitions need to change hands twice.
RARELY = st.integers(0, 4).map(lambda number: number == 4)


@dataclass
class Client:
    member_id: str
    topics: tuple[str, ...]
    instance: str | None = None
    alive: bool = True
    epoch: int = 0
    owned: set[TopicPartition] = field(default_factory=set)
    revoking: set[TopicPartition] = field(default_factory=set)  # Owned, but no longer assigned.
    says_everything: bool = True

    def on_assignment(self, assigned: set[TopicPartition]) -> None:
        self.revoking = self.owned - assigned
        self.owned |= assigned

    def finish_revocation(self) -> None:
        self.owned -= self.revoking
        self.revoking = set()

    def give_up(self) -> None:
        self.epoch = 0
        self.owned = set()
        self.revoking = set()
        self.says_everything = True


class ConsumerGroupModel(RuleBasedStateMachine):
    clients = Bundle("clients")
    config: ClassVar[dict[str, Any]] = {}

    @initialize()
    def start(self) -> None:
        self.coordinator = Coordinator(**self.config)
        self.all: list[Client] = []
        self.group_epoch = 0
        self.committed: dict[TopicPartition, int] = {}
        self.commit_count = 0

    @rule(
        target=clients,
        topics=st.sampled_from([("t",), ("u",), ("t", "u")]),
        static=st.booleans(),
    )
    def new_client(self, topics: tuple[str, ...], static: bool) -> object:
        if len(self.all) >= 5:
            return multiple()
        name = f"m{len(self.all)}"
        client = Client(name, topics, instance=f"i-{name}" if static else None)
        self.all.append(client)
        return client

    @rule(client=clients, lost=st.booleans(), revoked=st.booleans())
    def heartbeat(self, client: Client, lost: bool, revoked: bool) -> None:
        self._heartbeat(client, lost, revoked)

    @rule(data=st.data())
    def everyone_heartbeats(self, data: st.DataObject) -> None:
        for client in data.draw(st.permutations(self.all)):
            self._heartbeat(client, lost=False, revoked=data.draw(st.booleans()))

    def _heartbeat(self, client: Client, lost: bool, revoked: bool) -> None:
        if not client.alive:
            return
        if revoked:
            client.finish_revocation()
        try:
            response = self._send(client)
        except ApiError as error:
            self._on_refused(client, error.code)
            return
        if lost:
            client.says_everything = True
            return
        client.epoch = response.member_epoch
        client.says_everything = False
        assigned = self.coordinator.assigned(response)
        if assigned is not None:
            client.on_assignment(assigned)

    def _on_refused(self, client: Client, error: ErrorCode) -> None:
        assert error in {
            ErrorCode.fenced_member_epoch,
            ErrorCode.unknown_member_id,
            ErrorCode.unreleased_instance_id,
            ErrorCode.group_id_not_found,
        }
        client.give_up()

    def _send(self, client: Client) -> ConsumerGroupHeartbeatResponse:
        joins = client.epoch == 0
        everything = client.says_everything or joins
        return self.coordinator.beat(
            client.member_id,
            client.epoch,
            topics=client.topics if everything else None,
            owned=None if joins else client.owned,
            rebalance_ms=60_000 if everything else None,
            instance=client.instance,
        )

    @rule(client=clients, topics=st.sampled_from([("t",), ("u",), ("t", "u")]))
    def change_subscription(self, client: Client, topics: tuple[str, ...]) -> None:
        client.topics = topics
        client.says_everything = True

    @rule(client=clients, rarely=RARELY)
    def leave(self, client: Client, rarely: bool) -> None:
        if not rarely or not client.alive or client.epoch <= 0:
            return
        client.alive = False
        try:
            self.coordinator.beat(client.member_id, -1, instance=client.instance)
        except ApiError:
            pass
        client.give_up()

    @rule(client=clients)
    def restart_static(self, client: Client) -> None:
        """The process ends and a new one takes its instance over."""
        if not client.alive or client.epoch <= 0 or client.instance is None:
            return
        try:
            self.coordinator.beat(client.member_id, -2, instance=client.instance)
        except ApiError:
            pass
        client.give_up()
        client.member_id += "'"

    @rule(client=clients, rarely=RARELY)
    def crash(self, client: Client, rarely: bool) -> None:
        if rarely:
            client.alive = False
            client.give_up()

    @rule(rarely=RARELY)
    def time_passes(self, rarely: bool) -> None:
        """Longer than a session: clients that sent no heartbeats know that they are out."""
        if not rarely:
            return
        for client in self.all:
            client.give_up()
        self.coordinator.advance(46_000)

    @rule()
    def a_little_time_passes(self) -> None:
        self.coordinator.advance(1)

    @rule()
    def change_of_coordinator(self) -> None:
        before = self._describe()
        self.coordinator.reload()
        assert self._describe() == before

    @rule(topic=st.sampled_from(["t", "u"]))
    def add_partition(self, topic: str) -> None:
        topic_id, count = self.coordinator.catalog.topics[topic]
        if count < 6:
            self.coordinator.catalog.topics[topic] = (topic_id, count + 1)
            self.coordinator.catalog.topics_version += 1

    @rule(client=clients, data=st.data())
    def commit(self, client: Client, data: st.DataObject) -> None:
        if not client.owned or client.epoch <= 0:
            return
        topic_partition = data.draw(st.sampled_from(sorted(client.owned)))
        self.commit_count += 1
        try:
            self.coordinator.commit(
                {topic_partition: self.commit_count},
                member_id=client.member_id,
                generation=client.epoch,
            )
        except ApiError:
            return  # Its epoch is old; nothing was committed.
        self.committed[topic_partition] = self.commit_count

    def _describe(self) -> tuple[DescribedGroup, ...]:
        described: tuple[DescribedGroup, ...] = self.coordinator.run(
            lambda _: self.coordinator.machine.describe_consumer_groups(["g"])
        ).value
        return described

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owners: dict[TopicPartition, str] = {}
        for client in getattr(self, "all", []):
            for topic_partition in client.owned:
                assert topic_partition not in owners, (
                    topic_partition,
                    owners[topic_partition],
                    client.member_id,
                )
                owners[topic_partition] = client.member_id

    @invariant()
    def epochs_only_grow(self) -> None:
        if not hasattr(self, "coordinator"):
            return
        (group,) = self._describe()
        if group.error_code is ErrorCode.none:
            assert group.group_epoch >= self.group_epoch
            assert group.assignment_epoch <= group.group_epoch
            assert all(member.member_epoch <= group.assignment_epoch for member in group.members)
            self.group_epoch = group.group_epoch

    @invariant()
    def commits_stay(self) -> None:
        if hasattr(self, "coordinator"):
            assert self.coordinator.offsets() == self.committed

    def teardown(self) -> None:
        if not hasattr(self, "coordinator"):
            return
        self.time_passes(rarely=True)
        for _ in range(SETTLING_ROUNDS):
            self.coordinator.advance(10)
            for client in self.all:
                self._heartbeat(client, lost=False, revoked=True)
        alive = [client for client in self.all if client.alive]
        owned = set().union(*(client.owned for client in alive))
        assert owned == {
            (topic, partition)
            for client in alive
            for topic in client.topics
            for partition in range(self.coordinator.catalog.topics[topic][1])
        }


class BatchedConsumerGroupModel(ConsumerGroupModel):
    """Targets are computed rarely, so that members meet those of an older group epoch."""

    config: ClassVar[dict[str, Any]] = {
        "consumer": ConsumerConfig(
            pace=replace(
                MEMBERSHIP.default_pace,
                assignment_interval_ms=3,
                assignment_us_each=1_000_000,
                assignment_waits_above=0,
            )
        )
    }


MODEL_SETTINGS = settings(max_examples=60, stateful_step_count=40)
ConsumerGroupModel.TestCase.settings = MODEL_SETTINGS
BatchedConsumerGroupModel.TestCase.settings = MODEL_SETTINGS
TestConsumerGroupModel = ConsumerGroupModel.TestCase
TestBatchedConsumerGroupModel = BatchedConsumerGroupModel.TestCase
