"""A broker for the tests of handlers: real controller, real logs, a disk in memory."""

import asyncio
import dataclasses
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from random import Random
from uuid import UUID, uuid4

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest, Listener

from ottla.controller.config import BROKER_KEYS as CONTROLLER_KEYS
from ottla.controller.effective_configs import ConfigRules, EffectiveConfigs
from ottla.controller.records import PartitionRecord
from ottla.coordination.coordinators import Coordinators
from ottla.coordination.pending_writes import PendingWrites
from ottla.coordination.remote_log_ends import RemoteLogEnds
from ottla.coordination.remote_transactions import RemoteTransactions
from ottla.coordination.serving_coordinators import ServingCoordinators
from ottla.coordination.transaction_completion import TransactionCompletion
from ottla.coordination.transaction_markers import TransactionMarkers
from ottla.groups.config import BROKER_KEYS as COORDINATOR_KEYS
from ottla.groups.config import GroupConfig
from ottla.groups.consumer.config import BROKER_KEYS as CONSUMER_KEYS
from ottla.groups.coordinator import GroupMachine
from ottla.groups.group_config import GROUP_KEYS, validate_group
from ottla.groups.record_codec import GroupRecordCodec
from ottla.groups.share.config import BROKER_KEYS as SHARE_KEYS
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.dispatch import make_dispatch
from ottla.handlers.table import API_TABLE
from ottla.machine.partitioning import partition_for
from ottla.network.peers import Peers
from ottla.node.environment import Environment
from ottla.node.group_configs import GroupConfigs
from ottla.node.metadata_feed import Listener as FeedListener
from ottla.node.metadata_feed import MetadataFeed
from ottla.node.quorum import MetadataQuorum, QuorumSettings, open_replica
from ottla.node.share_groups import make_share_groups
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.config import ConfigKey, ConfigSchema, ConfigType
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import (
    CONSUMER_OFFSETS_TOPIC,
    INTERNAL_TOPICS,
    TRANSACTION_STATE_TOPIC,
    TopicPartition,
)
from ottla.raft.config import BROKER_KEYS as QUORUM_KEYS
from ottla.raft.quorum import Identity
from ottla.raft.voters import ReplicaKey
from ottla.records.batch import read_header
from ottla.records.builder import Record, build_batch
from ottla.replication.delayed_produce import DelayedProduces
from ottla.replication.directory_moves import DirectoryMoves
from ottla.replication.follower_sessions import FollowerSessions
from ottla.replication.partition import FlushPolicy, Partition
from ottla.runtime.client_metrics import ClientMetrics
from ottla.runtime.clock import SystemClock
from ottla.runtime.flusher import Flusher
from ottla.runtime.process import Process
from ottla.runtime.producer_ids import ProducerIds
from ottla.runtime.supervisor import Supervisor
from ottla.security.client_quotas import ClientQuotas
from ottla.security.principal import ANONYMOUS
from ottla.security.rates import Windows
from ottla.storage.broker_config import BROKER_KEYS as STORAGE_KEYS
from ottla.storage.broker_config import topic_defaults
from ottla.storage.config import TOPIC_KEYS, LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.future_logs import FutureLogs
from ottla.storage.log_maker import LogMaker
from ottla.storage.manager import LogManager
from ottla.storage.opening import open_partition_log
from ottla.transactions.config import BROKER_KEYS as TRANSACTION_KEYS
from ottla.transactions.config import TransactionConfig
from ottla.transactions.coordinator import TransactionMachine
from ottla.transactions.record_codec import TransactionRecordCodec

CLUSTER_ID = "test-cluster"

PASSWORD = ConfigKey("ssl.key.password", ConfigType.PASSWORD, "", "The password of the key.")
BROKER_SCHEMA = ConfigSchema(
    (
        *CONTROLLER_KEYS,
        *COORDINATOR_KEYS,
        *CONSUMER_KEYS,
        *QUORUM_KEYS,
        *SHARE_KEYS,
        *TRANSACTION_KEYS,
        *STORAGE_KEYS,
        PASSWORD,
    )
)
TOPIC_SCHEMA = ConfigSchema(TOPIC_KEYS)


class First(Random):
    """Chooses the first of what there is."""

    def randrange(self, *_):
        return 0


class LedPartitions:
    """The partitions of the image, each with a log from its first use on."""

    def __init__(self, image, disk, flusher):
        self.image = image
        self.disk = disk
        self.flusher = flusher
        self.partitions = {}
        self.delayed_produces = DelayedProduces()

    def listen(self, listener):
        """The test says itself when a partition is led."""

    def find(self, topic, index):
        if isinstance(topic, UUID):
            topic = self.image.topic_name(topic)
            if topic is None:
                raise ApiError(ErrorCode.unknown_topic_id)
        if self.image.partition(topic, index) is None:
            raise ApiError(ErrorCode.unknown_topic_or_partition)
        name = TopicPartition(topic, index)
        if name not in self.partitions:
            directory = f"/data/{name}"
            self.disk.make_directory(directory)
            now_ms = SystemClock().now_ms()
            log = open_partition_log(directory, name, None, LogConfig(), self.disk, now_ms)
            policy = FlushPolicy.OS if self.flusher is None else FlushPolicy.ACK
            self.partitions[name] = Partition(log, policy, self.flusher)
            self.partitions[name].become_leader(0, (1,))
        return self.partitions[name]

    find_readable = find

    def find_in_epoch(self, topic, index, leader_epoch, *, follower=False):
        partition = self.find(topic, index)
        partition.validate_leader_epoch(leader_epoch)
        return partition

    def append(self, topic, index, *timestamps):
        """One batch for each timestamp; they are committed."""
        log = self.find(topic, index).log
        for timestamp in timestamps:
            batch = build_batch([Record(timestamp=timestamp, value=b"value")])
            log.append_as_leader(memoryview(batch), read_header(batch), 0, timestamp)
        log.flush()
        log.high_watermark = log.log_end_offset
        return log


class OneDirectory:
    path = "/data"
    online = True
    cordoned = False
    total_bytes = 1000
    usable_bytes = 400

    moves = ()

    def __init__(self, replicas):
        self.replicas = replicas
        filesystem = FaultyFilesystem()
        self.log_dirs = LogManager([self.path], filesystem, lambda: 0).log_dirs
        self.futures = FutureLogs(self.log_dirs, uuid4, LogMaker(filesystem, lambda: 0, 0))
        self.damaged = []
        self.corrupt = {}

    @property
    def logs(self):
        return [partition.log for partition in self.replicas.partitions.values()]

    def directories(self):
        return [self]


class FakeSession:
    """Collects what is sent."""

    listener_name = "PLAINTEXT"
    peer_address = "127.0.0.1"
    peer_port = 50_000
    may_act_as_node = True
    principal = ANONYMOUS
    access = None
    is_token_authenticated = False

    def __init__(self):
        self.sent = []
        self.answered = asyncio.Event()
        self.receiver = self
        self.client_id = None
        self.client_software_name = None
        self.client_software_version = None
        self.attachment = None

    def send_now(self, data):
        self.send((data,))

    def reply(self, _overtakers=None):
        return self

    def let_pass(self, _overtakers):
        pass

    def become_peer(self):
        pass

    def call_on_close(self, callback):
        pass

    def send(self, parts):
        self.sent.extend(parts)
        self.answered.set()


class RecordingFlusher(Flusher):
    """Remembers the syncs that it was asked for."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.synced = []

    def request(self, log, callback):
        self.synced.append(log.topic_partition.topic)
        super().request(log, callback)


def _config_rules(static):
    """Nobody sends heartbeats for the broker, however long a test takes."""
    values = {name.replace("_", "."): value for name, value in static.items()}
    return ConfigRules(
        TOPIC_SCHEMA,
        BROKER_SCHEMA,
        BROKER_SCHEMA.parse({"broker.session.timeout.ms": 3_600_000, **values}),
        topic_defaults,
        ConfigSchema(GROUP_KEYS),
        validate_group,
    )


class Node:
    """Broker 1, registered with two listeners, on a loop of its own.

    With `flushes` what is appended is synced before it is acknowledged.
    """

    def __init__(self, api_versions=None, *, flushes=False, **static):
        self.loop = asyncio.new_event_loop()
        self.executor = ThreadPoolExecutor(1)
        self.failures = []
        self.claims = []
        self.session = FakeSession()
        self.coordinator_epoch = 0
        self.is_in_touch = True
        self._clock = SystemClock()
        self.quotas = ClientQuotas(Windows(11, 1000))
        self._supervisor = Supervisor(self.loop, self.failures.append)
        self.process = Process(
            loop=self.loop,
            clock=self._clock,
            executor=self.executor,
            supervisor=self._supervisor,
        )
        rules = _config_rules(static)
        disk = FaultyFilesystem(seed=1)
        feed = MetadataFeed()
        self.image = feed.image
        self.quorum = self._make_quorum(rules, disk, feed)
        self.controller = self.quorum.controller
        self.flusher = (
            RecordingFlusher(self.loop, self.executor, self.failures.append) if flushes else None
        )
        self.replicas = LedPartitions(self.image, disk, self.flusher)
        self.groups = self._make_coordinators(
            CONSUMER_OFFSETS_TOPIC, self._group_machine, GroupRecordCodec
        )
        self.transactions = self._make_coordinators(
            TRANSACTION_STATE_TOPIC, self._transaction_machine, TransactionRecordCodec
        )
        markers = TransactionMarkers(self.replicas, self.groups, self._clock.now_ms, self.loop)
        self.completion = TransactionCompletion(
            self.transactions,
            self.image,
            markers.write,
            lambda _: self.coordinator_epoch,
            self._supervisor,
            self.loop,
        )
        self.run(self._register())
        feed.listen(FeedListener(self._on_record, lambda _: None))
        configs = EffectiveConfigs(self.image, rules, 1)
        self.share = self.run(self._start_share_groups(configs))
        self.broker = self._make_broker(configs, markers, api_versions or {})

    def _make_quorum(self, rules, disk, feed):
        ids = count(1)
        return MetadataQuorum(
            settings=QuorumSettings(
                identity=Identity(cluster_id=CLUSTER_ID, key=ReplicaKey(1, UUID(int=1))),
                listener_name="PLAINTEXT",
                bootstrap={},
                rules=rules,
            ),
            replica=open_replica(disk, "/data", self._clock.now_ms()),
            feed=feed,
            peers=Peers(self.loop, "node-1", lambda: 0.5),
            environment=dataclasses.replace(
                Environment.real(),
                filesystem=disk,
                random=First(),
                new_uuid=lambda: UUID(int=next(ids)),
                executor=self.executor,
            ),
            supervisor=self._supervisor,
            on_failure=self.failures.append,
            on_claim=self.claims.append,
        )

    def _make_coordinators(self, topic, new_machine, codec):
        return Coordinators(
            topic,
            self.image,
            partition_for,
            new_machine,
            codec,
            self.process,
            perform=lambda effect: self.completion.begin(effect),
        )

    async def _ask_broker(self, broker_id, _):
        raise ApiError(ErrorCode.coordinator_not_available, f"broker {broker_id} is not there")

    def _make_broker(self, configs, markers, api_versions):
        return Broker(
            node_id=1,
            cluster_id=CLUSTER_ID,
            image=self.image,
            controller=self.controller,
            quorum=self.quorum.requests,
            metadata_end_offset=lambda: self.quorum.applier.applied_offset,
            connections=self.quorum.connections,
            fenced_brokers=self.quorum.fenced,
            is_in_touch=lambda: self.is_in_touch,
            configs=configs,
            producer_ids=ProducerIds(self._allocate),
            replicas=self.replicas,
            directory_moves=DirectoryMoves(
                OneDirectory(self.replicas), self.replicas, self.process
            ),
            follower_sessions=FollowerSessions(self.replicas, count(1).__next__, self.process),
            groups=self.groups,
            transactions=self.transactions,
            coordinators_elsewhere=ServingCoordinators(self._ask_broker, self._supervisor),
            completion=self.completion,
            markers=markers,
            remote_transactions=RemoteTransactions(
                1, self.image, self.transactions.partition_of, None, self._supervisor, self.loop
            ),
            pending_writes=PendingWrites(self.loop),
            share=self.share,
            logs=OneDirectory(self.replicas),
            clock=self._clock,
            loop=self.loop,
            executor=self.executor,
            supervisor=self._supervisor,
            quotas=self.quotas,
            fetch_bytes_max=1 << 20,
            reads_from_nearest=True,
            client_metrics=ClientMetrics(
                self.image, self._clock, bytes_max=1 << 20, clients_max=10
            ),
            new_uuid=Environment.real().new_uuid,
            api_versions=api_versions,
        )

    def run(self, awaitable):
        return self.loop.run_until_complete(awaitable)

    def call(self, handle, request, api_version=99, listener_name="PLAINTEXT"):
        context = RequestContext(api_version, "client", listener_name, self.session)
        response = handle(self.broker, context, request)
        if asyncio.isfuture(response) or asyncio.iscoroutine(response):
            return self.run(response)
        return response

    def ask(self, api_key, version, request, session=None):
        """Through the dispatch, as bytes; on a new session unless one is given."""
        session = session or FakeSession()
        session.sent.clear()
        session.answered.clear()
        frame = write_request(api_key, version, 7, "client", request)
        make_dispatch(self.broker, API_TABLE)(session, memoryview(bytearray(frame[4:])))
        self.run(session.answered.wait())
        (answer,) = session.sent
        return read_response(api_key, version, memoryview(answer)[4:])[1]

    def register_another(self, broker_id):
        """A broker that has the internal listener only, and stays fenced."""
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=UUID(int=broker_id),
            listeners=(Listener(name="INTERNAL", host="other", port=9999, security_protocol=0),),
            features=(),
            rack=None,
        )
        self.run(self._await(self.controller.call, request))

    def close(self):
        self.run(self.quorum.stop())
        self.run(self._supervisor.stop())
        coordinators = (self.groups, self.transactions, self.share.coordinators)
        for runtime in (runtime for each in coordinators for runtime in each.all()):
            runtime.unload(ApiError(ErrorCode.not_coordinator))
        self.executor.shutdown()
        self.loop.close()
        assert self.failures == []

    def _on_record(self, record, _):
        if isinstance(record, PartitionRecord):
            topic = self.image.topic_name(record.topic_id)
            if topic in INTERNAL_TOPICS:
                partition = self.replicas.find(topic, record.partition_id)
                for coordinators in (self.groups, self.transactions, self.share.coordinators):
                    coordinators.leadership_listener.on_elected(partition)

    async def _start_share_groups(self, configs):
        return make_share_groups(
            self.process,
            node_id=1,
            replicas=self.replicas,
            image=self.image,
            values=configs.broker_values(),
            config=GroupConfigs(configs, self.image).share,
            controller=self.controller,
            coordinator_at=self._share_coordinator_at,
            ask_to_produce=self._produce_at,
            log_ends=RemoteLogEnds(self.image, self._produce_at),
            random=First(),
        )

    async def _produce_at(self, broker_id, request):
        return await self.produce_at(broker_id, request)

    async def produce_at(self, broker_id, _):
        """What another broker answers to a Produce; tests replace it."""
        raise ApiError(ErrorCode.coordinator_not_available, f"there is no broker {broker_id}")

    def _share_coordinator_at(self, broker_id):
        raise ApiError(ErrorCode.coordinator_not_available, f"there is no broker {broker_id}")

    def _group_machine(self, timers):
        ids = count(1)
        return GroupMachine(
            config=GroupConfig(initial_rebalance_delay_ms=0),
            catalog=self.image,
            timers=timers,
            new_uuid=lambda: str(UUID(int=next(ids))),
        )

    def _transaction_machine(self, timers):
        return TransactionMachine(config=TransactionConfig(), timers=timers)

    async def _await(self, call, request):
        return await call(request)

    async def _allocate(self):
        epoch = self.image.brokers[1].broker_epoch
        return await self.controller.call(
            AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
        )

    async def _register(self):
        await self.quorum.start()
        registered = await self.controller.call(
            BrokerRegistrationRequest(
                broker_id=1,
                cluster_id=CLUSTER_ID,
                incarnation_id=UUID(int=1),
                listeners=(
                    Listener(name="PLAINTEXT", host="public", port=9092, security_protocol=0),
                    Listener(name="INTERNAL", host="private", port=9093, security_protocol=0),
                ),
                features=(),
                rack="r1",
            )
        )
        await self.controller.call(
            BrokerHeartbeatRequest(
                broker_id=1,
                broker_epoch=registered.broker_epoch,
                current_metadata_offset=registered.broker_epoch,
                want_fence=False,
                want_shut_down=False,
            )
        )
