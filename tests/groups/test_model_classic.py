"""Classic groups under honest clients, crashes and changes of coordinator.

A client rejoins on request, giving up its partitions first; the leader distributes the partitions.
Whatever happens, no two clients own the same partition, generations only grow, replies do not stay
parked forever, and acknowledged commits stay.
"""

import json
from dataclasses import dataclass, field

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
from kio.schema.join_group.v9.response import JoinGroupResponse
from tests.groups.kit import Coordinator, Reply

from ottla.groups.classic.records import GroupMetadataKey, GroupMetadataValue
from ottla.machine.record import Record
from ottla.protocol.errors import ApiError, ErrorCode

PARTITION_COUNT = 4
TICK_MS = 2_000
SESSION_MS = 10_000
RARELY = st.integers(0, 4).map(lambda number: number == 4)


@dataclass
class Client:
    name: str
    instance: str | None
    alive: bool = True
    member_id: str = ""
    generation: int = -1
    joining: Reply | None = None
    syncing: Reply | None = None
    owned: set[int] = field(default_factory=set)
    ticks_waiting: int = 0

    def forget(self, *, keep_id: bool = False) -> None:
        if not keep_id:
            self.member_id = ""
        self.generation = -1
        self.joining = self.syncing = None
        self.owned = set()
        self.ticks_waiting = 0


class ClassicGroupModel(RuleBasedStateMachine):
    clients = Bundle("clients")

    @initialize()
    def start(self) -> None:
        self.coordinator = Coordinator()
        self.all: list[Client] = []
        self.committed: dict[tuple[str, int], int] = {}
        self.commit_count = 0

    @rule(target=clients, static=st.booleans())
    def new_client(self, static: bool) -> object:
        if len(self.all) >= 5:
            return multiple()
        name = f"c{len(self.all)}"
        client = Client(name, instance=f"i-{name}" if static else None)
        self.all.append(client)
        return client

    # A client's next step.

    @rule(client=clients)
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
        elif client.generation < 0:
            self._join(client)
        else:
            response = self.coordinator.heartbeat(
                client.member_id, client.generation, instance=client.instance
            )
            self._on_error(client, response.error_code)

    def _join(self, client: Client) -> None:
        client.owned = set()
        client.joining = self.coordinator.join(
            client.member_id,
            instance=client.instance,
            session_ms=SESSION_MS,
            rebalance_ms=20_000,
            client=client.name,
        )

    def _on_joined(self, client: Client, response: JoinGroupResponse) -> None:
        client.joining = None
        client.ticks_waiting = 0
        if response.error_code is ErrorCode.member_id_required:
            client.member_id = response.member_id
            self._join(client)
            return
        if response.error_code is not ErrorCode.none:
            self._on_error(client, response.error_code)
            return
        client.member_id = response.member_id
        client.generation = response.generation_id
        leads = response.leader == client.member_id and not response.skip_assignment
        members = [member.member_id for member in response.members]
        client.syncing = self.coordinator.sync(
            client.member_id,
            client.generation,
            _dealt_out(members) if leads else {},
            instance=client.instance,
        )

    def _on_synced(self, client: Client, reply: Reply) -> None:
        client.syncing = None
        client.ticks_waiting = 0
        if reply.value.error_code is ErrorCode.none:
            client.owned = set(json.loads(reply.value.assignment or b"[]"))
        else:
            self._on_error(client, reply.value.error_code)

    def _on_error(self, client: Client, error: ErrorCode) -> None:
        if error is ErrorCode.rebalance_in_progress:
            client.forget(keep_id=True)
        elif error is not ErrorCode.none:
            assert error in {
                ErrorCode.unknown_member_id,
                ErrorCode.illegal_generation,
                ErrorCode.fenced_instance_id,
            }
            client.forget(keep_id=error is ErrorCode.illegal_generation)

    # Events for all of them.

    @rule(data=st.data())
    def tick(self, data: st.DataObject) -> None:
        """Enough time for every living client to do all that it can."""
        self.coordinator.advance(TICK_MS)
        for _ in range(3):
            for client in data.draw(st.permutations(self.all)):
                self.act(client)
        for client in self.all:
            waits = client.joining is not None or client.syncing is not None
            client.ticks_waiting = client.ticks_waiting + 1 if waits else 0

    @rule(client=clients, rarely=RARELY)
    def leave(self, client: Client, rarely: bool) -> None:
        if not rarely or not client.alive or not client.member_id:
            return
        client.alive = False
        try:
            self.coordinator.leave((client.member_id, client.instance))
        except ApiError as error:
            self._on_error(client, error.code)
        client.forget()

    @rule(client=clients, rarely=RARELY)
    def crash(self, client: Client, rarely: bool) -> None:
        if rarely:
            client.alive = False
            client.forget()

    @rule(client=clients, rarely=RARELY)
    def restart(self, client: Client, rarely: bool) -> None:
        """A static member returns without its member id, before its session ends."""
        if rarely and client.alive:
            client.forget()

    @rule(rarely=RARELY)
    def change_of_coordinator(self, rarely: bool) -> None:
        """Parked requests fail; clients retry them."""
        if not rarely:
            return
        self.coordinator.reload()
        for client in self.all:
            if client.joining is not None or client.syncing is not None:
                client.forget(keep_id=True)

    @rule(client=clients, data=st.data())
    def commit(self, client: Client, data: st.DataObject) -> None:
        if not client.owned:
            return
        topic_partition = ("t", data.draw(st.sampled_from(sorted(client.owned))))
        self.commit_count += 1
        try:
            self.coordinator.commit(
                {topic_partition: self.commit_count},
                member_id=client.member_id,
                generation=client.generation,
                instance=client.instance,
            )
        except ApiError as error:
            self._on_error(client, error.code)
        else:
            self.committed[topic_partition] = self.commit_count

    # What always holds.

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owners: dict[int, str] = {}
        for client in getattr(self, "all", []):
            for partition in client.owned:
                assert partition not in owners, (partition, owners[partition], client.name)
                owners[partition] = client.name

    @invariant()
    def generations_only_grow(self) -> None:
        generation = 0
        for record in self.coordinator.log if hasattr(self, "coordinator") else ():
            if isinstance(record, Record) and isinstance(record.key, GroupMetadataKey):
                if isinstance(record.value, GroupMetadataValue):
                    assert record.value.generation >= generation
                    generation = record.value.generation
                else:
                    generation = 0

    @invariant()
    def nobody_waits_for_ever(self) -> None:
        """A rebalance takes at most its timeout to gather members, and as long again to assign."""
        for client in getattr(self, "all", []):
            assert client.ticks_waiting * TICK_MS <= 45_000

    @invariant()
    def commits_stay(self) -> None:
        if hasattr(self, "coordinator"):
            assert self.coordinator.offsets() == self.committed


def _dealt_out(members: list[str]) -> dict[str, bytes]:
    return {
        member_id: json.dumps(list(range(rank, PARTITION_COUNT, len(members)))).encode()
        for rank, member_id in enumerate(members)
    }


ClassicGroupModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestClassicGroupModel = ClassicGroupModel.TestCase
