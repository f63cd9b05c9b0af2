"""The clients of a run."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.network.peers import Address
from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import FinalState, History
from ottla.testing.simulator.clients.admin import create_topic
from ottla.testing.simulator.clients.classic_member import ClassicMember
from ottla.testing.simulator.clients.client import Client, Unavailable
from ottla.testing.simulator.clients.consumer_member import ConsumerMember
from ottla.testing.simulator.clients.consumption import Consumption
from ottla.testing.simulator.clients.copier import Copier, copier_group
from ottla.testing.simulator.clients.producer import Producer
from ottla.testing.simulator.clients.reader import Fetcher, Reader
from ottla.testing.simulator.events import ReadRecord
from ottla.testing.simulator.profile import Profile
from ottla.testing.simulator.simulated_client import SimulatedClient, Work, Works

if TYPE_CHECKING:
    from ottla.testing.simulator.network import Network

TOPIC = "orders"
COPIES = "copies"
REPLICATION_FACTOR_MAX = 3


class Workloads:
    def __init__(
        self, network: "Network", profile: Profile, history: History, bootstrap: Sequence[Address]
    ) -> None:
        count = profile.partitions_count
        self.partitions = [TopicPartition(TOPIC, index) for index in range(count)]
        self.copies = [TopicPartition(COPIES, index) for index in range(count)]
        self._network = network
        self._profile = profile
        self._history = history
        self._bootstrap = bootstrap

    def topics(self) -> SimulatedClient:
        """Makes the topics, and ends."""
        factor = min(self._profile.nodes_count, REPLICATION_FACTOR_MAX)
        count = self._profile.partitions_count
        return self._client(
            "admin",
            lambda client: [
                create_topic(client, name, partitions_count=count, replication_factor=factor)
                for name in (TOPIC, COPIES)
            ],
        )

    def all(self) -> list[SimulatedClient]:
        return [*self._producers(), *self._readers(), *self._members(), *self._copiers()]

    def final(self, state: FinalState) -> SimulatedClient:
        """Reads what there is into `state`, and ends."""

        def work(client: Client) -> Works:
            reads = [
                _read_to_end(client, partition, state.records.setdefault(partition, []))
                for partition in self.partitions
            ]
            reads += [
                _read_to_end(
                    client, partition, state.copies.setdefault(partition, []), committed=True
                )
                for partition in self.copies
            ]
            reads += [
                self._read_copied_to(client, partition, state)
                for partition in self.partitions[: self._profile.copiers_count]
            ]
            return reads

        return self._client("final", work)

    def _producers(self) -> Iterator[SimulatedClient]:
        profile = self._profile
        producers = [True] * profile.idempotent_producers_count
        producers += [False] * profile.plain_producers_count
        for number, idempotent in enumerate(producers):
            yield self._client(f"producer-{number}", partial(self._produce, idempotent=idempotent))

    def _produce(self, client: Client, *, idempotent: bool) -> Works:
        pause_s = self._profile.pause_s
        return [
            Producer(client, self._history, partition, idempotent=idempotent, pause_s=pause_s).run()
            for partition in self.partitions
        ]

    def _readers(self) -> Iterator[SimulatedClient]:
        for number in range(self._profile.readers_count):
            yield self._client(
                f"reader-{number}",
                lambda client: [
                    Reader(client, self._history, partition).run() for partition in self.partitions
                ],
            )

    def _members(self) -> Iterator[SimulatedClient]:
        history = self._history
        for number in range(self._profile.consumer_members_count):
            yield self._client(
                f"member-{number}",
                lambda client: [ConsumerMember(client, history, "consumers", TOPIC).run()],
                mortal=True,
            )
        for number in range(self._profile.classic_members_count):
            yield self._client(
                f"classic-{number}",
                lambda client: [ClassicMember(client, history, "classics", self.partitions).run()],
                mortal=True,
            )

    def _copiers(self) -> Iterator[SimulatedClient]:
        for number in range(min(self._profile.copiers_count, len(self.partitions))):
            yield self._client(
                f"copier-{number}",
                partial(self._copy, source=self.partitions[number]),
                mortal=True,
            )

    def _copy(self, client: Client, *, source: TopicPartition) -> Works:
        return [Copier(client, self._history, source, self.copies).run()]

    def _client(self, name: str, work: Work, *, mortal: bool = False) -> SimulatedClient:
        return SimulatedClient(self._network, name, self._bootstrap, work, mortal=mortal)

    async def _read_copied_to(
        self, client: Client, partition: TopicPartition, state: FinalState
    ) -> None:
        consumption = Consumption(client, self._history, copier_group(partition))
        while partition not in state.copied_to:
            try:
                state.copied_to[partition] = await consumption.fetch_offset(partition, "", -1)
            except Unavailable:
                await client.back_off()


async def _read_to_end(
    client: Client,
    partition: TopicPartition,
    records: list[ReadRecord],
    *,
    committed: bool = False,
) -> None:
    fetcher = Fetcher(client, partition, committed=committed)
    while fetcher.end_offset != fetcher.offset:
        records += await fetcher.poll(wait_ms=0)
