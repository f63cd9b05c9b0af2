"""A group whose members of both protocols come and go, so that its own protocol keeps changing.

Classic clients are eager, giving up all that they own before they rejoin, or cooperative, giving up
only what they must. Whatever happens, no two clients own the same partition.
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
from kio.schema.join_group.v9.response import JoinGroupResponse, JoinGroupResponseMember
from tests.groups.kit import Coordinator, Reply, subscription

from ottla.groups.consumer.config import MEMBERSHIP, ConsumerConfig
from ottla.groups.consumer_protocol import parse_assignment, parse_subscription, write_assignment
from ottla.protocol.errors import ApiError, ErrorCode

TopicPartition = tuple[str, int]
PARTITIONS = [("t", partition) for partition in range(4)]
RARELY = st.integers(0, 4).map(lambda number: number == 4)


@dataclass
class Client:
    name: str
    alive: bool = True
    member_id: str = ""
    epoch: int = 0  # Or a classic member's generation.
    owned: set[TopicPartition] = field(default_factory=set)
    revoking: set[TopicPartition] = field(default_factory=set)
    joining: Reply | None = None
    syncing: Reply | None = None

    def give_up(self, *, keep_id: bool = False) -> None:
        """It loses everything; a cooperative client that only rejoins keeps what it owns."""
        self.owned, self.revoking = set(), set()
        self.rejoin(keep_id=keep_id)

    def rejoin(self, *, keep_id: bool = True) -> None:
        self.epoch = 0
        self.joining = self.syncing = None
        if not keep_id:
            self.member_id = ""


class MigrationModel(RuleBasedStateMachine):
    classic = Bundle("classic")
    consumers = Bundle("consumers")
    config: ClassVar[dict[str, Any]] = {}

    @initialize(cooperative=st.booleans())
    def start(self, cooperative: bool) -> None:
        self.cooperative = cooperative
        self.coordinator = Coordinator(initial_rebalance_delay_ms=0, **self.config)
        self.all: list[Client] = []

    @rule(target=classic)
    def new_classic(self) -> object:
        return self._new("c")

    @rule(target=consumers)
    def new_consumer(self) -> object:
        return self._new("n")

    def _new(self, prefix: str) -> object:
        if len(self.all) >= 6:
            return multiple()
        client = Client(f"{prefix}{len(self.all)}")
        self.all.append(client)
        return client

    # Consumers.

    @rule(client=consumers, revoked=st.booleans())
    def beat(self, client: Client, revoked: bool) -> None:
        if not client.alive:
            return
        if revoked:
            client.owned -= client.revoking
            client.revoking = set()
        try:
            response = self.coordinator.beat(
                client.name, client.epoch, owned=client.owned if client.epoch else None
            )
        except ApiError as error:
            assert_known(error.code)
            client.give_up()
            return
        client.epoch = response.member_epoch
        assigned = self.coordinator.assigned(response)
        if assigned is not None:
            client.revoking = client.owned - assigned
            client.owned |= assigned

    # Members of the classic protocol.

    @rule(client=classic)
    def act(self, client: Client) -> None:
        if not client.alive:
            return
        try:
            self._act(client)
        except ApiError as error:
            self._on_error(client, error.code)

    def _act(self, client: Client) -> None:
        if client.joining is not None:
            if not client.joining.waits:
                self._on_joined(client, client.joining.value)
        elif client.syncing is not None:
            if not client.syncing.waits:
                self._on_synced(client, client.syncing)
        elif not client.epoch:
            self._join(client)
        else:
            response = self.coordinator.heartbeat(client.member_id, client.epoch)
            self._on_error(client, response.error_code)

    def _join(self, client: Client) -> None:
        if not self.cooperative:
            client.owned = set()
        client.joining = self.coordinator.join(
            client.member_id, client=client.name, protocols={"p": _subscription(client.owned)}
        )

    def _on_joined(self, client: Client, response: JoinGroupResponse) -> None:
        client.joining = None
        if response.error_code is ErrorCode.member_id_required:
            client.member_id = response.member_id
            self._join(client)
        elif response.error_code is not ErrorCode.none:
            self._on_error(client, response.error_code)
        else:
            client.member_id, client.epoch = response.member_id, response.generation_id
            leads = response.leader == client.member_id
            assignments = _dealt_out(response.members) if leads else {}
            client.syncing = self.coordinator.sync(client.member_id, client.epoch, assignments)

    def _on_synced(self, client: Client, reply: Reply) -> None:
        client.syncing = None
        if reply.value.error_code is not ErrorCode.none:
            self._on_error(client, reply.value.error_code)
            return
        partitions = parse_assignment(reply.value.assignment)
        assigned = {(topic, index) for topic, found in partitions.items() for index in found}
        revoked = client.owned - assigned
        client.owned = assigned
        if revoked:
            client.rejoin()

    def _on_error(self, client: Client, error: ErrorCode) -> None:
        if error is ErrorCode.rebalance_in_progress:
            client.rejoin()
        elif error is not ErrorCode.none:
            assert_known(error)
            client.give_up(keep_id=error is ErrorCode.illegal_generation)

    # Events for all of them.

    @rule(data=st.data())
    def everyone_acts(self, data: st.DataObject) -> None:
        self.coordinator.advance(1_000)
        for client in data.draw(st.permutations(self.all)):
            if client.name.startswith("c"):
                self.act(client)
            else:
                self.beat(client, data.draw(st.booleans()))

    @rule(data=st.data(), rarely=RARELY)
    def someone_goes(self, data: st.DataObject, rarely: bool) -> None:
        alive = [client for client in self.all if client.alive and client.epoch > 0]
        if not rarely or not alive:
            return
        client = data.draw(st.sampled_from(alive))
        client.alive = False
        try:
            if client.name.startswith("c"):
                self.coordinator.leave((client.member_id, None))
            else:
                self.coordinator.beat(client.name, -1)
        except ApiError as error:
            assert_known(error.code)
        client.give_up()

    @rule(rarely=RARELY)
    def change_of_coordinator(self, rarely: bool) -> None:
        """Parked requests fail; clients retry them."""
        if not rarely:
            return
        self.coordinator.reload()
        for client in self.all:
            if client.joining is not None or client.syncing is not None:
                client.rejoin()

    @rule(rarely=RARELY)
    def time_passes(self, rarely: bool) -> None:
        """Longer than all sessions: clients that sent no heartbeats know that they are out."""
        if rarely:
            for client in self.all:
                client.give_up()
            self.coordinator.advance(46_000)

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owners: dict[TopicPartition, str] = {}
        for client in getattr(self, "all", []):
            for topic_partition in client.owned:
                assert topic_partition not in owners, (
                    topic_partition,
                    owners[topic_partition],
                    client.name,
                )
                owners[topic_partition] = client.name


def assert_known(error: ErrorCode) -> None:
    assert error in {
        ErrorCode.unknown_member_id,
        ErrorCode.illegal_generation,
        ErrorCode.fenced_member_epoch,
        ErrorCode.group_id_not_found,
    }


def _subscription(owned: set[TopicPartition]) -> bytes:
    indexes = tuple(partition for _, partition in owned)
    claim = write_assignment(1, {"t": indexes})[2:-4] if owned else bytes(4)
    return b"\x00\x01" + subscription("t")[2:] + claim


def _dealt_out(members: tuple[JoinGroupResponseMember, ...]) -> dict[str, bytes]:
    """Partitions that a member claims to own go to another one only after it has revoked them."""
    claims = {
        (topic, index): member.member_id
        for member in members
        for topic, found in parse_subscription(member.metadata).owned_partitions.items()
        for index in found
    }
    ids = sorted(member.member_id for member in members)
    shares: dict[str, list[int]] = {member_id: [] for member_id in ids}
    for topic_partition in PARTITIONS:
        wanted = ids[topic_partition[1] % len(ids)]
        if claims.get(topic_partition, wanted) == wanted:
            shares[wanted].append(topic_partition[1])
    return {
        member_id: write_assignment(1, {"t": tuple(found)} if found else {})
        for member_id, found in shares.items()
    }


class BatchedMigrationModel(MigrationModel):
    """Targets are computed rarely, so that members of both protocols meet older ones."""

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


MODEL_SETTINGS = settings(max_examples=80, stateful_step_count=40)
MigrationModel.TestCase.settings = MODEL_SETTINGS
BatchedMigrationModel.TestCase.settings = MODEL_SETTINGS
TestMigrationModel = MigrationModel.TestCase
TestBatchedMigrationModel = BatchedMigrationModel.TestCase
