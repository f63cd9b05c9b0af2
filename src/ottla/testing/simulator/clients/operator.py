"""The operator: adds and removes nodes, moves replicas, creates, grows and deletes topics.

Each kind of operation is a method. It may fail halfway and be repeated, as by a person.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.clients.admin import Admin, without
from ottla.testing.simulator.clients.client import RefusedError, Unavailable
from ottla.testing.simulator.clients.passing_topic import pass_topic
from ottla.testing.simulator.membership import Membership
from ottla.testing.simulator.violation import Violation

if TYPE_CHECKING:
    from ottla.testing.simulator.simulated_node import SimulatedNode

NODES_MIN: Final = 3  # As many as there are replicas.
NODES_MAX: Final = 5
PARTITIONS_MAX: Final = 5
PASSING_NAMES: Final = 2
_LOOK_S: Final = 0.2
_HAND_OVER_LOOKS: Final = 20


@dataclass(slots=True, kw_only=True)
class Operator:
    admin: Admin
    membership: Membership
    topic: str
    kinds: Sequence[str]
    interval_s: float
    on_partition_added: Callable[[int], None]
    partitions: Sequence[TopicPartition]  # Of the topic; new ones are to be put in there.
    _passed_count: int = 0

    async def run(self) -> None:
        client = self.admin.client
        while not client.stopping:
            await asyncio.sleep(client.chance.expovariate(1.0 / self.interval_s))
            kind = client.chance.choice(self.kinds)
            try:
                if await getattr(self, f"_{kind}")():
                    client.host.scheduler.count(f"operation: {kind}")
            except Unavailable as error:
                client.tell(f"could not {kind}: {error}")
            except RefusedError as error:
                raise Violation(f"{kind} was refused with {error}") from error

    # Topics.

    async def _add_partition(self) -> bool:
        count = len(self.partitions) + 1
        if count > PARTITIONS_MAX:
            return False
        await self.admin.until_done(lambda: self.admin.create_partitions(self.topic, count))
        self.on_partition_added(count - 1)
        return True

    async def _pass_topic(self) -> bool:
        """One of few names, so that a topic has had others of its name before it."""
        name = f"passing-{self._passed_count % PASSING_NAMES}"
        self._passed_count += 1
        factor = min(NODES_MIN, len(self.membership.nodes))
        await pass_topic(self.admin, name, factor)
        return True

    # Replicas.

    async def _reassign(self) -> bool:
        replicas = await self.admin.replicas()
        if not replicas:
            return False
        chance = self.admin.client.chance
        partition = chance.choice(sorted(replicas))
        members = [node.node_id for node in self.membership.nodes if not node.leaving]
        target = chance.sample(members, min(len(members), len(replicas[partition])))
        if chance.random() < 0.1:
            await self.admin.reassign({partition: None})
        else:
            await self.admin.reassign({partition: target})
            self.admin.client.tell(f"{partition} moves to {target}")
        return True

    async def _elect(self) -> bool:
        await self.admin.elect_preferred_leaders()
        return True

    # Members.

    async def _join(self) -> bool:
        if len(self.membership.nodes) >= NODES_MAX:
            return False
        node = self.membership.add()
        served = asyncio.Event()
        node.on_serving.append(lambda _: served.set())
        node.start()
        await served.wait()
        return True

    async def _leave(self) -> bool:
        nodes = self.membership.nodes
        if len(nodes) <= NODES_MIN:
            return False
        node = self.admin.client.chance.choice(nodes)
        node.leaving = True
        self.admin.client.tell(f"{node} is to leave")
        broker_id = node.node_id
        await self.admin.until_done(
            lambda: self.admin.set_config("cordoned.log.dirs", "*", str(broker_id))
        )
        await self._drain(node)
        await self._hand_over_vote(broker_id)
        await self._stop(node)
        await self._drain(node)  # Of what it was given meanwhile.
        await self.admin.until_done(lambda: self.admin.remove_voters(broker_id))
        await self.admin.until_done(lambda: self.admin.unregister(broker_id))
        await self._drain(node)  # Should a request that seemed lost have come late.
        self.admin.client.tell(f"{node} has left")
        self.membership.remove(node)
        return True

    async def _drain(self, leaving: "SimulatedNode") -> None:
        """Returns when no partition has a replica there."""
        broker_id = leaving.node_id
        while True:
            try:
                replicas = await self.admin.replicas()
                left = {each: on for each, on in replicas.items() if broker_id in on}
                if not left:
                    return
                members = [node.node_id for node in self.membership.nodes if not node.leaving]
                await self.admin.reassign(
                    {each: without(on, broker_id, members, NODES_MIN) for each, on in left.items()}
                )
            except Unavailable as error:
                self.admin.client.tell(f"{leaving} is not drained yet: {error}")
            await asyncio.sleep(_LOOK_S)

    async def _hand_over_vote(self, broker_id: int) -> None:
        """Another node has it soon, if there is one; then the quorum can do without this one."""
        for _ in range(_HAND_OVER_LOOKS):
            with suppress(Unavailable):
                if broker_id not in {voter.replica_id for voter in await self.admin.voters()}:
                    return
            await asyncio.sleep(_LOOK_S)
        await self.admin.until_done(lambda: self.admin.remove_voters(broker_id))

    async def _stop(self, node: "SimulatedNode") -> None:
        """For good."""
        node.held_down += 1
        while node.host.process is not None:
            if node.serving:
                node.stop()
            await asyncio.sleep(1.0)
        while True:
            try:
                if await self.admin.is_fenced(node.node_id):
                    return
            except Unavailable as error:
                self.admin.client.tell(f"{node} may not be fenced yet: {error}")
            await asyncio.sleep(_LOOK_S)


OPERATIONS: Final = ("add_partition", "pass_topic", "reassign", "elect", "join", "leave")
