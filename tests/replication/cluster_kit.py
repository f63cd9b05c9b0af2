"""Several brokers in one loop, over disks in memory and links that can be cut.

The test is the controller: it feeds metadata, and it decides who leads. Changes of in-sync sets are
decided as the controller decides them, by epochs alone.
"""

import asyncio
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from uuid import UUID

from kio.schema.alter_partition.v3.response import (
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)
from tests.replication.manager_kit import topic_id
from tests.replication.roles import leader_of
from tests.storage.batches import NOW_MS, produced, read_all, values_of

from ottla.controller.image import MetadataImage
from ottla.controller.records import (
    BrokerEndpoint,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from ottla.handlers.follower_fetch import handle_follower_fetch
from ottla.network.durations import ApiCounters
from ottla.network.peers import PeerUnreachable
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.frames import parse_request_header
from ottla.protocol.hot_fetch import parse_fetch
from ottla.protocol.times import NO_THROTTLE
from ottla.replication.fetch_sessions import FetchSessions
from ottla.replication.follower_sessions import FollowerSessions
from ottla.replication.isr_changes import IsrChanges
from ottla.replication.manager import FollowingListener, ReplicaManager, ReplicaSettings
from ottla.replication.partition import FlushPolicy
from ottla.replication.partition_leader import ACKS_ALL
from ottla.replication.replica_fetcher import FetcherSettings, FetcherTools
from ottla.replication.replica_fetchers import ReplicaFetchers
from ottla.runtime.clock import SystemClock
from ottla.runtime.flusher import Flusher
from ottla.runtime.process import Process
from ottla.runtime.supervisor import Supervisor
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.manager import LogManager

WAIT_MAX_MS = 50
LAG_MAX_MS = 3_600_000  # Nobody leaves the in-sync set because this process was paused.
SHORT_LAG_MAX_MS = 200


class _Reply:
    """Of one request, on one connection that may be cut meanwhile."""

    may_act_as_node = True

    def __init__(self, answered):
        self.answered = answered
        self.receiver = self

    def reply(self, _overtakers=None):
        return self

    def become_peer(self):
        pass

    def send(self, parts):
        data = b"".join(part if isinstance(part, bytes) else part.read() for part in parts)
        if not self.answered.done():
            self.answered.set_result(memoryview(data)[4:])

    def call_on_close(self, callback):
        pass

    def forget_on_close(self, callback):
        pass


class Links:
    """The `Peers` of one broker: its requests go straight to the handlers of the others."""

    def __init__(self, cluster, broker_id):
        self.client_id = f"broker-{broker_id}"
        self.cluster = cluster
        self.broker_id = broker_id
        self.requests_count = 0
        self.waiting = {}  # By the broker that was asked.

    async def call_frame(self, address, build, *, purpose, timeout_ms):
        target = self.cluster.brokers.get(address.port)
        if target is None or self.cluster.is_cut(self.broker_id, address.port):
            raise PeerUnreachable(f"{address} is cut off")
        self.requests_count += 1
        answered = asyncio.get_running_loop().create_future()
        self.waiting.setdefault(address.port, set()).add(answered)
        target.handle_fetch(build(self.requests_count), answered)
        try:
            return await answered
        finally:
            self.waiting[address.port].discard(answered)

    def drop(self, address, purpose, reason):
        for answered in self.waiting.get(address.port, ()):
            if not answered.done():
                answered.set_exception(PeerUnreachable(reason))


class ClusterBroker:
    def __init__(self, cluster, broker_id, disk):
        loop = asyncio.get_running_loop()
        clock = SystemClock()
        self.cluster = cluster
        self.id = broker_id
        self.epoch = next(cluster.broker_epochs)
        self.fed_count = 0  # Of the cluster's records.
        self.disk = disk
        self.executor = ThreadPoolExecutor(2)
        self.image = MetadataImage()
        self.supervisor = Supervisor(loop, cluster.failures.append)
        self.process = Process(
            loop=loop, clock=clock, executor=self.executor, supervisor=self.supervisor
        )
        self.links = Links(cluster, broker_id)
        self.logs = LogManager(cluster.directories, disk, clock.now_ms)
        self.logs.start(broker_id)
        flusher = Flusher(loop, self.executor, self._on_flush_failure)
        self.replicas = ReplicaManager(
            ReplicaSettings(broker_id, cluster.policy, cluster.lag_max_ms),
            self.logs,
            lambda topic: cluster.log_config,
            flusher,
            FetchSessions(10, 1),
            clock,
        )
        self.fetchers = ReplicaFetchers(
            self.links,
            lambda leader: Address("broker", leader),
            1000,
            FetcherSettings(broker_id, cluster.wait_max_ms, 1, 1 << 20, 1 << 20, 40),
            FetcherTools(
                lambda: self.epoch,
                self.logs,
                self.executor,
                self.supervisor,
                loop,
                self.replicas.on_truncated,
                self.replicas.throttle,
            ),
        )
        changes = IsrChanges(
            broker_id, lambda: self.epoch, cluster.alter_partition, clock, self.supervisor
        )
        self.replicas.listen_to_following(
            FollowingListener(self.fetchers.follow, self.fetchers.unfollow, changes.submit)
        )
        self.supervisor.start("in-sync sets", self._shrink_in_sync_sets())
        self.served = SimpleNamespace(
            follower_sessions=FollowerSessions(self.replicas, count(1).__next__, self.process),
            fetch_bytes_max=1 << 20,
            apis=defaultdict(ApiCounters),
            authorizer=None,
        )

    async def _shrink_in_sync_sets(self):
        while True:
            await asyncio.sleep(SHORT_LAG_MAX_MS / 2 / 1000)
            self.replicas.shrink_in_sync_sets()

    def _on_flush_failure(self, log, error):
        self.replicas.on_flush_failure(log, error)

    def handle_fetch(self, frame, answered):
        view = memoryview(frame)[4:]
        header = parse_request_header(view)
        request = parse_fetch(view, header.body_position, header.api_version)
        handle_follower_fetch(self.served, _Reply(answered), header, request)

    def feed(self, record):
        self.image.replay(record)
        self.replicas.on_record(record, self.image)

    def log(self, name, index=0):
        return self.partition(name, index).log

    def partition(self, name, index=0):
        """Whatever its role is."""
        for partition in self.replicas.partitions():
            if partition.log.topic_partition == (name, index):
                return partition
        raise LookupError(name)

    def values(self, name, committed=False):
        log = self.log(name)
        values = [value.decode() for value in values_of(read_all(log))]
        return values[: log.high_watermark - log.log_start_offset] if committed else values

    async def produce(self, name, *values, acks=ACKS_ALL, index=0):
        """Returns when it is acknowledged; ApiError if it was refused."""
        partition = self.replicas.find(name, index)
        leader = leader_of(partition)
        if acks == ACKS_ALL:
            leader.validate_in_sync_replicas()
        appended = leader.append(*produced(*(value.encode() for value in values)), NOW_MS)
        if not leader.acknowledged(appended, acks):
            outcome = asyncio.get_running_loop().create_future()
            leader.wait_for_acknowledgement(
                appended, acks, lambda error: outcome.done() or outcome.set_result(error)
            )
            error = await outcome
            if error is not None:
                raise error

    async def stop(self):
        await self.supervisor.stop()
        self.executor.shutdown()
        for links in (broker.links for broker in self.cluster.brokers.values()):
            links.drop(Address("broker", self.id), "", "the broker stops")


class Cluster:
    """Use it in a running loop. `failures` has the exceptions of tasks, which are bugs."""

    def __init__(
        self,
        broker_ids=(1, 2, 3),
        policy=FlushPolicy.ACK,
        min_insync_replicas=1,
        wait_max_ms=WAIT_MAX_MS,
        lag_max_ms=LAG_MAX_MS,
        directories=("/data",),
    ):
        self.directories = directories
        self.wait_max_ms = wait_max_ms
        self.lag_max_ms = lag_max_ms
        self.policy = policy
        self.log_config = LogConfig(min_insync_replicas=min_insync_replicas)
        self.failures = []
        self.records = []
        self.image = MetadataImage()
        self.cuts = set()
        self.broker_epochs = count(70)
        self.brokers = {}
        for broker_id in broker_ids:
            self.start(broker_id, FaultyFilesystem(seed=broker_id))

    def start(self, broker_id, disk):
        """A broker with what is on a disk; the metadata is told as one image."""
        broker = ClusterBroker(self, broker_id, disk)
        for record in self.records:
            broker.image.replay(record)
        broker.replicas.load(broker.image)
        broker.fed_count = len(self.records)
        self.brokers[broker_id] = broker
        self.feed(
            RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=UUID(int=broker.epoch),
                broker_epoch=broker.epoch,
                end_points=(BrokerEndpoint(name="PLAINTEXT", host="host", port=broker_id),),
                fenced=False,
            )
        )
        return broker

    async def crash(self, broker_id):
        """What was not synced is lost; returns the disk."""
        broker = self.brokers.pop(broker_id)
        broker.replicas.fail(ApiError(ErrorCode.not_leader_or_follower, "crashed"))
        await broker.stop()
        broker.disk.crash()
        return broker.disk

    def feed(self, record):
        """To all brokers; those that are cut off get it later."""
        self.records.append(record)
        self.image.replay(record)
        for broker in self.brokers.values():
            self._catch_up(broker)

    def _catch_up(self, broker):
        if broker.id not in self.cuts:
            while broker.fed_count < len(self.records):
                broker.fed_count += 1
                broker.feed(self.records[broker.fed_count - 1])

    def create(self, name, replicas=(1, 2, 3), isr=None, leader=None):
        self.feed(TopicRecord(name=name, topic_id=topic_id(name)))
        self.feed(
            PartitionRecord(
                partition_id=0,
                topic_id=topic_id(name),
                replicas=replicas,
                isr=replicas if isr is None else isr,
                leader=replicas[0] if leader is None else leader,
            )
        )

    def change(self, name, **changes):
        self.feed(PartitionChangeRecord(partition_id=0, topic_id=topic_id(name), **changes))

    def state(self, name):
        return self.image.partition(name, 0)

    def leader(self, name):
        return self.brokers[self.state(name).leader]

    def cut(self, *broker_ids):
        """They are cut off from the others and the metadata, and requests that wait fail."""
        self.cuts.update(broker_ids)
        for broker_id, broker in self.brokers.items():
            for other in self.brokers:
                if self.is_cut(broker_id, other):
                    broker.links.drop(Address("broker", other), "", "the link is cut")

    def heal(self):
        self.cuts.clear()
        for broker in self.brokers.values():
            self._catch_up(broker)

    def is_cut(self, one, other):
        return (one in self.cuts) != (other in self.cuts)

    async def alter_partition(self, request):
        await asyncio.sleep(0)
        if request.broker_id in self.cuts:
            raise ApiError(ErrorCode.request_timed_out)
        return AlterPartitionResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            topics=tuple(
                replace(
                    TopicData(topic_id=topic.topic_id, partitions=()),
                    partitions=tuple(
                        self._alter(request.broker_id, topic.topic_id, wanted)
                        for wanted in topic.partitions
                    ),
                )
                for topic in request.topics
            ),
        )

    def _alter(self, broker_id, topic, wanted):
        state = self.image.topics_by_id[topic].partitions[wanted.partition_index]
        code = ErrorCode.none
        if wanted.leader_epoch != state.leader_epoch or broker_id != state.leader:
            code = ErrorCode.fenced_leader_epoch
        elif wanted.partition_epoch != state.partition_epoch:
            code = ErrorCode.invalid_update_version
        elif any(
            member.broker_id not in self.brokers
            or member.broker_epoch not in (-1, self.brokers[member.broker_id].epoch)
            for member in wanted.new_isr_with_epochs
        ):
            code = ErrorCode.ineligible_replica
        else:
            isr = tuple(member.broker_id for member in wanted.new_isr_with_epochs)
            self.feed(
                PartitionChangeRecord(partition_id=wanted.partition_index, topic_id=topic, isr=isr)
            )
            state = self.image.topics_by_id[topic].partitions[wanted.partition_index]
        return PartitionData(
            partition_index=wanted.partition_index,
            error_code=code,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            partition_epoch=state.partition_epoch,
        )

    async def close(self):
        for broker in list(self.brokers.values()):
            await broker.stop()
        assert self.failures == [], self.failures


def run(test, **options):
    async def whole():
        cluster = Cluster(**options)
        try:
            await test(cluster)
        finally:
            await cluster.close()

    asyncio.run(whole())


async def until(condition):
    """The test's timeout ends it if it never comes true."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)
