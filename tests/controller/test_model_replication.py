"""A cluster whose logs are just lengths: a cleanly elected leader has every acked record.

The brokers behave like replication: the leader reports who is in sync, a record is acknowledged
once all in-sync replicas have it, and there are enough of them. A broker that crashes may lose the
end of its logs, and then says so, or its whole disk.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from kio.schema.alter_partition.v3 import request as alter_partition
from kio.schema.alter_partition_reassignments.v1 import request as reassignment
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32
from tests.controller.cluster import Cluster
from tests.controller.test_configs import increments
from tests.controller.test_machine import image_of
from tests.controller.test_topics import creation, topic

from ottla.controller.image import TOPIC_RESOURCE
from ottla.controller.records import PartitionRecord
from ottla.protocol.errors import ErrorCode

BROKERS = (1, 2, 3, 4)
SESSION_MS = 1500
broker_ids = st.sampled_from(BROKERS)
replica_lists = st.lists(broker_ids, min_size=1, max_size=3, unique=True).map(tuple)


class Replicated(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(brokers=0)
        self.alive = set(BROKERS)
        self.disks = dict.fromkeys(BROKERS, 1)
        for broker_id in BROKERS:
            self.cluster.register(broker_id, log_dirs=(1,))
            self.cluster.heartbeat(broker_id)
        request = creation(
            topic("t", assignments={0: (1, 2, 3)}, configs={"min.insync.replicas": "2"})
        )
        self.cluster.call(request)
        self.ends = dict.fromkeys(BROKERS, 0)
        self.acked = 0
        self.min_isr = 2
        self.lives = 200
        self.before = self.partition

    @property
    def partition(self) -> PartitionRecord:
        return self.cluster.partition("t", 0)

    @property
    def leader(self) -> BrokerId | None:
        return self.partition.leader if self.partition.leader in self.alive else None

    def led(self) -> bool:
        return self.leader is not None

    def heartbeats(self) -> None:
        for broker_id in sorted(self.alive):
            self.cluster.heartbeat(broker_id)

    def alter(self, isr: tuple[int, ...]) -> None:
        partition = self.partition
        brokers = self.cluster.image.brokers
        wanted = alter_partition.PartitionData(
            partition_index=i32(0),
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=tuple(
                alter_partition.BrokerState(
                    broker_id=BrokerId(member_id), broker_epoch=brokers[member_id].broker_epoch
                )
                for member_id in isr
            ),
        )
        request = alter_partition.AlterPartitionRequest(
            broker_id=partition.leader,
            broker_epoch=brokers[partition.leader].broker_epoch,
            topics=(alter_partition.TopicData(topic_id=partition.topic_id, partitions=(wanted,)),),
        )
        self.cluster.call(request)

    def lose(self, broker_id: int, end: int) -> None:
        """Its records are gone; that is allowed if no other replica is known to have them."""
        self.ends[broker_id] = min(self.ends[broker_id], end)
        partition = self.partition
        known = {*partition.isr, *(partition.eligible_leader_replicas or ())}
        if known <= {broker_id}:
            self.acked = min(self.acked, self.ends[broker_id])

    @precondition(led)
    @rule()
    def write(self) -> None:
        partition, leader = self.partition, self.leader
        assert leader is not None
        self.ends[leader] += 1
        for replica in partition.isr:
            if replica in self.alive:
                self.ends[replica] = self.ends[leader]
        enough = min(self.min_isr, len(partition.replicas))
        if set(partition.isr) <= self.alive and len(partition.isr) >= enough:
            self.acked = self.ends[leader]

    @precondition(led)
    @rule(broker_id=broker_ids)
    def catch_up(self, broker_id: int) -> None:
        partition, leader = self.partition, self.leader
        assert leader is not None
        broker = self.cluster.image.brokers[broker_id]
        if broker_id in partition.replicas and broker_id in self.alive and not broker.fenced:
            self.ends[broker_id] = self.ends[leader]
            if broker_id not in partition.isr:
                self.alter((*partition.isr, broker_id))

    @precondition(led)
    @rule(broker_id=broker_ids)
    def lag(self, broker_id: int) -> None:
        partition = self.partition
        if broker_id in partition.isr and broker_id != partition.leader:
            self.alter(tuple(member_id for member_id in partition.isr if member_id != broker_id))

    @rule(broker_id=broker_ids)
    def die(self, broker_id: int) -> None:
        self.alive.discard(broker_id)

    @rule(broker_id=broker_ids, is_flushed=st.booleans(), end=st.integers(0, 5))
    def restart(self, broker_id: int, is_flushed: bool, end: int) -> None:
        if broker_id in self.alive or not self.cluster.image.brokers[broker_id].fenced:
            return
        if not is_flushed:
            self.lose(broker_id, end)
        self.register(broker_id, is_clean=is_flushed)

    @rule(broker_id=broker_ids)
    def replace_disk(self, broker_id: int) -> None:
        if broker_id in self.alive or not self.cluster.image.brokers[broker_id].fenced:
            return
        self.ends[broker_id] = 0
        self.disks[broker_id] += 1
        self.register(broker_id, is_clean=False)

    def register(self, broker_id: int, *, is_clean: bool) -> None:
        self.lives += 1
        self.cluster.register(
            broker_id,
            incarnation=self.lives,
            log_dirs=(self.disks[broker_id],),
            previous_broker_epoch=(
                self.cluster.image.brokers[broker_id].broker_epoch if is_clean else -1
            ),
        )
        self.alive.add(broker_id)

    @rule()
    def let_sessions_expire(self) -> None:
        self.heartbeats()
        self.cluster.advance(SESSION_MS // 2)
        self.heartbeats()
        self.cluster.advance(SESSION_MS)
        self.heartbeats()

    @rule()
    def wait_for_preferred_leaders(self) -> None:
        for _ in range(11):
            self.heartbeats()
            self.cluster.advance(1000)

    @rule(broker_id=broker_ids)
    def shut_down(self, broker_id: int) -> None:
        if broker_id not in self.alive:
            return
        for _ in range(3):
            self.heartbeats()
            response = self.cluster.heartbeat(broker_id, want_shut_down=True)
            if response.should_shut_down:
                self.alive.discard(broker_id)
                return

    @rule(replicas=replica_lists)
    def reassign(self, replicas: tuple[int, ...]) -> None:
        self.retarget(replicas)

    @rule()
    def cancel_reassignment(self) -> None:
        self.retarget(None)

    def retarget(self, replicas: tuple[int, ...] | None) -> None:
        target = reassignment.ReassignablePartition(
            partition_index=i32(0),
            replicas=None if replicas is None else tuple(map(BrokerId, replicas)),
        )
        request = reassignment.AlterPartitionReassignmentsRequest(
            topics=(reassignment.ReassignableTopic(name=TopicName("t"), partitions=(target,)),)
        )
        self.cluster.call(request)

    @rule(minimum=st.integers(1, 3))
    def change_minimum(self, minimum: int) -> None:
        request = increments(
            ("min.insync.replicas", 0, str(minimum)), resource=(TOPIC_RESOURCE, "t")
        )
        self.cluster.call(request)
        self.min_isr = minimum

    @rule()
    def elect_preferred(self) -> None:
        request = ElectLeadersRequest(election_type=i8(0), topic_partitions=None)
        self.cluster.call(request)

    @rule()
    def elect_unclean(self) -> None:
        request = ElectLeadersRequest(election_type=i8(1), topic_partitions=None)
        response = self.cluster.call(request)
        for result in response.replica_election_results:
            if (
                result.partition_result[0].error_code is ErrorCode.none
                and self.partition.leader_recovery_state
            ):
                self.acked = min(self.acked, self.ends[self.partition.leader])

    @rule()
    def change_controllers(self) -> None:
        self.cluster.reload()

    @invariant()
    def a_leader_has_what_was_acked(self) -> None:
        if self.partition.leader != -1:
            assert self.ends[self.partition.leader] >= self.acked

    @invariant()
    def who_is_in_sync_or_eligible_has_what_was_acked(self) -> None:
        partition = self.partition
        for replica in (*partition.isr, *(partition.eligible_leader_replicas or ())):
            assert self.ends[replica] >= self.acked

    @invariant()
    def sets_fit_together(self) -> None:
        partition = self.partition
        isr, eligible = set(partition.isr), set(partition.eligible_leader_replicas or ())
        replicas = set(partition.replicas)
        assert len(replicas) == len(partition.replicas)
        assert isr <= replicas
        assert eligible <= replicas
        assert not isr & eligible
        assert not (eligible and len(isr) >= min(self.min_isr, len(replicas)))
        assert set(partition.adding_replicas) <= replicas
        assert set(partition.removing_replicas) <= replicas
        assert replicas - set(partition.removing_replicas)
        if partition.leader != -1:
            broker = self.cluster.image.brokers[partition.leader]
            assert partition.leader in isr
            assert not broker.fenced
            assert not broker.in_controlled_shutdown

    @invariant()
    def epochs_grow(self) -> None:
        before, after = self.before, self.partition
        assert after.leader_epoch >= before.leader_epoch
        assert after.partition_epoch >= before.partition_epoch
        if after.leader != before.leader or not set(before.replicas) <= set(after.replicas):
            assert after.leader_epoch > before.leader_epoch
        if after != before:
            assert after.partition_epoch > before.partition_epoch
        self.before = after

    @invariant()
    def the_log_gives_the_same_image(self) -> None:
        assert image_of(self.cluster.records) == self.cluster.image


Replicated.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestReplicated = Replicated.TestCase
