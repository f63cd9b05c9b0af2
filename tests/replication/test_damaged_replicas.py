import asyncio
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
from tests.kits.world import until as wait_until
from tests.replication.manager_kit import ME, ManagerKit, topic_id
from tests.replication.test_manager import append

from ottla.controller.directories import LOST, UNASSIGNED
from ottla.protocol.errors import ErrorCode
from ottla.replication.damaged_replicas import DamagedReplicas, RepairSettings
from ottla.replication.partition import Partition
from ottla.runtime.supervisor import Supervisor

TOPIC = "topic"


class Kit(ManagerKit):
    """A broker whose log has damage at offset 1; `reported` is what the controller was told."""

    def __init__(self, replicas: tuple[int, ...] = (1, 2, 3), leader: int = 1) -> None:
        super().__init__()
        self.reported: list[UUID | None] = []
        self.truncated: list[int] = []
        self.refusal = ErrorCode.none
        self.create(TOPIC, replicas, leader=1)
        partition = self.partition(TOPIC)
        for value in (b"a", b"b", b"c"):
            append(partition, value)
            partition.log.roll()
        self.logs.flush()
        self.disk.flip_bit(partition.log.segments[1].path, 66)
        self.logs.scrub()
        assert [damage.first_offset for damage in partition.log.damage] == [1]
        if leader != ME:
            self.change(TOPIC, leader=leader)

    async def assign(self, request: AssignReplicasToDirsRequest) -> Any:
        (directory,) = request.directories
        self.reported.append(directory.id_)
        if self.refusal is ErrorCode.none:
            state = self.image.topics[TOPIC].partitions[0]
            is_lost = directory.id_ == LOST
            self.change(
                TOPIC,
                leader=2 if is_lost else state.leader,
                isr=(2, 3) if is_lost else state.isr,
                directories=(directory.id_, UNASSIGNED, UNASSIGNED),
            )
        partition = SimpleNamespace(error_code=self.refusal)
        topics = (SimpleNamespace(partitions=(partition,)),)
        return SimpleNamespace(
            error_code=ErrorCode.none, directories=(SimpleNamespace(topics=topics),)
        )

    async def truncate(self, partition: Partition, offset: int) -> None:
        state = self.image.topics[TOPIC].partitions[0]
        assert ME not in state.isr, "others count on what is truncated"
        assert state.leader != ME
        self.truncated.append(offset)
        partition.log.truncate_to(offset)

    def run(self, until: Callable[[], bool]) -> None:
        async def whole() -> None:
            supervisor = Supervisor(
                asyncio.get_running_loop(), lambda error: pytest.fail(str(error))
            )
            damaged = DamagedReplicas(
                RepairSettings(ME, lambda: 71, random.Random(0)),
                self.logs,
                self.replicas,
                self.assign,
                self.truncate,
                supervisor,
            )
            damaged.look()
            damaged.look()
            await wait_until(until)
            await supervisor.stop()

        asyncio.run(whole())


@pytest.mark.parametrize("leader", [1, 2], ids=["leader", "follower"])
def test_a_damaged_replica_is_taken_out_then_truncated_then_it_returns(leader: int) -> None:
    kit = Kit(leader=leader)
    directory = kit.logs.log_dirs.ids["/data"]
    kit.run(lambda: len(kit.reported) == 2)
    assert kit.reported == [LOST, directory]
    assert kit.truncated == [1]
    assert kit.partition(TOPIC).log.log_end_offset == 1
    assert kit.logs.damaged == []


def test_nothing_is_truncated_while_nobody_else_has_everything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kit = Kit()
    kit.refusal = ErrorCode.eligible_leaders_not_available
    kit.run(lambda: len(kit.reported) >= 2)
    assert kit.truncated == []
    assert "offsets 1 to 1 are damaged and cannot be read, and no other replica" in caplog.text
    assert kit.replicas.find(TOPIC, 0).log.log_end_offset == 3


def test_a_single_replica_is_served_around_its_damage(caplog: pytest.LogCaptureFixture) -> None:
    kit = Kit(replicas=(1,))
    kit.run(lambda: True)
    assert kit.reported == []
    assert "offsets 1 to 1 are damaged and cannot be read, and it has no other" in caplog.text
    assert topic_id(TOPIC) == kit.partition(TOPIC).log.topic_id
