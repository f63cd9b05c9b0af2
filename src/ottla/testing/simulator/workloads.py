"""The clients of a run."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import FinalState, History
from ottla.testing.simulator.clients.admin import Admin
from ottla.testing.simulator.clients.classic_member import ClassicMember
from ottla.testing.simulator.clients.client import Client, Unavailable
from ottla.testing.simulator.clients.consumer_member import ConsumerMember
from ottla.testing.simulator.clients.consumption import Consumption
from ottla.testing.simulator.clients.copier import Copier, copier_group
from ottla.testing.simulator.clients.operator import Operator
from ottla.testing.simulator.clients.producer import ACKS_ALL, Producer
from ottla.testing.simulator.clients.queue_worker import QueueWorker
from ottla.testing.simulator.clients.reader import read, read_to_end
from ottla.testing.simulator.membership import Membership
from ottla.testing.simulator.profile import Profile
from ottla.testing.simulator.simulated_client import SimulatedClient, Work, Works

if TYPE_CHECKING:
    from ottla.testing.simulator.network import Network

TOPIC = "orders"
COPIES = "copies"
REPLICATION_FACTOR_MAX = 3
MIN_INSYNC_REPLICAS = "min.insync.replicas"


class Workloads:
    def __init__(
        self,
        network: "Network",
        profile: Profile,
        history: History,
        membership: Membership,
        start: Callable[[SimulatedClient], None],
    ) -> None:
        """`start` starts later clients."""
        count = profile.partitions_count
        self.partitions = [TopicPartition(TOPIC, index) for index in range(count)]
        self.copies = [TopicPartition(COPIES, index) for index in range(count)]
        self._network = network
        self._profile = profile
        self._producers_count = (
            profile.idempotent_producers_count
            + profile.plain_producers_count
            + profile.careless_producers_count
        )
        self._history = history
        self._membership = membership
        self._start = start

    def topics(self) -> SimulatedClient:
        """Makes the topics, and ends.

        The least number of in-sync replicas is in the metadata, for the controller goes by that.
        """
        factor = min(self._profile.nodes_count, REPLICATION_FACTOR_MAX)
        count = self._profile.partitions_count

        async def create(admin: Admin) -> None:
            await admin.until_done(lambda: admin.set_config(MIN_INSYNC_REPLICAS, "2"))
            for name in (TOPIC, COPIES):
                await admin.until_done(
                    partial(
                        admin.create_topic,
                        name,
                        partitions_count=count,
                        replication_factor=factor,
                    )
                )

        return self._client("admin", lambda client: [create(Admin(client))])

    def operator(self) -> Iterator[SimulatedClient]:
        """Whoever changes the cluster, if somebody does."""
        profile = self._profile
        if profile.operations:
            yield self._client(
                "operator",
                lambda client: [
                    Operator(
                        admin=Admin(client),
                        membership=self._membership,
                        topic=TOPIC,
                        kinds=profile.operations,
                        interval_s=profile.operation_interval_s,
                        on_partition_added=self._on_partition_added,
                        partitions=self.partitions,
                    ).run()
                ],
            )

    def _on_partition_added(self, index: int) -> None:
        partition = TopicPartition(TOPIC, index)
        self.partitions.append(partition)
        self._start(
            self._client(
                f"producer-of-{index}",
                lambda client: [self._producer(client, partition, idempotent=True).run()],
            )
        )

    def all(self) -> list[SimulatedClient]:
        profile = self._profile
        copiers_count = min(profile.copiers_count, len(self.partitions))
        kinds: list[tuple[str, int, Callable[[int, Client], Works], bool]] = [
            ("producer", self._producers_count, self._produce, False),
            ("reader", profile.readers_count, self._read, False),
            ("member", profile.consumer_members_count, self._consume, True),
            ("classic", profile.classic_members_count, self._consume_classic, True),
            ("copier", copiers_count, self._copy, True),
            ("worker", profile.queue_workers_count, self._work, True),
        ]
        return [
            self._client(f"{name}-{number}", partial(work, number), mortal=is_mortal)
            for name, count, work, is_mortal in kinds
            for number in range(count)
        ]

    def final(self, state: FinalState) -> SimulatedClient:
        """Reads what there is into `state`, and ends."""

        def work(client: Client) -> Works:
            reads = [
                read_to_end(client, partition, state.records.setdefault(partition, []))
                for partition in self.partitions
            ]
            reads += [
                read_to_end(
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

    def _produce(self, number: int, client: Client) -> Works:
        """The first ones are idempotent, the last ones careless."""
        idempotent_count = self._profile.idempotent_producers_count
        is_careless = number >= idempotent_count + self._profile.plain_producers_count
        return [
            self._producer(
                client,
                partition,
                idempotent=number < idempotent_count,
                acks=1 if is_careless else ACKS_ALL,
            ).run()
            for partition in self.partitions
        ]

    def _producer(
        self,
        client: Client,
        partition: TopicPartition,
        *,
        idempotent: bool,
        acks: int = ACKS_ALL,
    ) -> Producer:
        return Producer(
            client,
            self._history,
            partition,
            idempotent=idempotent,
            pause_s=self._profile.round_interval_s * self._producers_count * len(self.partitions),
            acks=acks,
            keyed=self._profile.queue_order,
        )

    def _read(self, _: int, client: Client) -> Works:
        return [read(client, self._history, partition) for partition in self.partitions]

    def _consume(self, _: int, client: Client) -> Works:
        return [ConsumerMember(client, self._history, "consumers", TOPIC).run()]

    def _consume_classic(self, _: int, client: Client) -> Works:
        return [ClassicMember(client, self._history, "classics", self.partitions).run()]

    def _copy(self, number: int, client: Client) -> Works:
        return [Copier(client, self._history, self.partitions[number], self.copies).run()]

    def _work(self, _: int, client: Client) -> Works:
        in_order = self._profile.queue_order
        return [QueueWorker(client, self._history, self.partitions, in_order=in_order).run()]

    def _client(self, name: str, work: Work, *, mortal: bool = False) -> SimulatedClient:
        return SimulatedClient(self._network, name, self._membership.addresses, work, mortal=mortal)

    async def _read_copied_to(
        self, client: Client, partition: TopicPartition, state: FinalState
    ) -> None:
        consumption = Consumption(client, self._history, copier_group(partition))
        while partition not in state.copied_to:
            try:
                state.copied_to[partition] = await consumption.fetch_offset(partition, "", -1)
            except Unavailable:
                await client.back_off()
