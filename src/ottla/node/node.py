"""One node: builds everything, starts it in order, stops it in reverse.

Start: the log directories are locked and loaded, sockets are bound, the node joins the metadata
quorum, registers as a broker and waits for an image with the registration. Then it sets up its
partitions according to the image, the controller unfences it, and clients are served.

Other nodes of the quorum are served as soon as this one takes part, because without it there may be
no one to register with. A single voter waits for no one, and no one waits for it.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ottla.controller.config import BROKER_HEARTBEAT_INTERVAL_MS, BROKER_SESSION_TIMEOUT_MS
from ottla.handlers.broker import Broker
from ottla.handlers.dispatch import make_dispatch, make_early_dispatch
from ottla.handlers.table import API_TABLE, EARLY_API_TABLE
from ottla.network.endpoints import Endpoint, advertised_endpoints
from ottla.network.server import Server
from ottla.network.session import Session
from ottla.network.tls import TlsError
from ottla.node.audit_topic import start_audit
from ottla.node.beginning import (
    claim_text,
    is_loopback,
    listen_for_members,
    listening_s,
    save_claim,
)
from ottla.node.broker_factory import make_broker
from ottla.node.cluster_minimum import warn_of_other_minimum
from ottla.node.config import (
    BROKER_RACK,
    CONTROLLED_SHUTDOWN_ENABLE,
    CONTROLLED_SHUTDOWN_TIMEOUT_MS,
    has_metrics,
)
from ottla.node.coordination import start_coordination
from ottla.node.dynamic_configs import DynamicConfigs
from ottla.node.environment import Environment
from ottla.node.housekeeping import Housekeeping
from ottla.node.image_listeners import report_directories, take_up_image
from ottla.node.joining import CannotJoin
from ottla.node.leaving import Remaining, leave_in_order
from ottla.node.membership import Membership
from ottla.node.node_parts import make_parts
from ottla.node.quorum import MetadataQuorum
from ottla.node.readiness import Phase, Readiness
from ottla.node.registration import SESSIONS_WAITED, BrokerIdentity, Registration, alone_interval
from ottla.node.replication import connect_replication
from ottla.node.start_errors import StartError, start_error
from ottla.node.stopping import Stopping
from ottla.node.users_file import UsersFileError
from ottla.node.voting import Voting
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.partition import FlushPolicy
from ottla.runtime.claims import Claim
from ottla.runtime.config import QUORUM_SIZE
from ottla.runtime.controller import Controller
from ottla.storage.broker_config import FLUSH_POLICY
from ottla.storage.directory_identity import WrongDirectory
from ottla.storage.errors import CorruptLog, StorageError

if TYPE_CHECKING:
    from ottla.node.metrics.server import MetricsServer

logger = logging.getLogger(__name__)

SESSIONS_GRACE_S: Final = 1.0


def _refuse_early(session: Session, _: memoryview) -> None:
    session.close("the node starts")


class Node:
    """`values` are the validated configuration values that were set; see `node.config`.

    With `new_cluster` it may begin a cluster, wherever it listens; without `listens_first`, at
    once, because no one can know its address. It belongs to the event loop in which it is created.
    """

    def __init__(
        self,
        values: Mapping[str, object],
        environment: Environment | None = None,
        *,
        new_cluster: bool = False,
        listens_first: bool = True,
    ) -> None:
        self._new_cluster = new_cluster
        self._listens_first = listens_first
        self.failed = asyncio.Event()
        self._parts = parts = make_parts(
            values,
            environment or Environment.real(),
            on_failure=self._on_failure,
            on_directory_failure=self._on_directory_failure,
            on_full_directory=self._on_full_directory,
        )
        self.directories = parts.directories  # Its data directories.
        # To inspect; None before they exist.
        self.image = parts.feed.image
        self.replicas = parts.replicas
        self.server: Server | None = None
        self.quorum: MetadataQuorum | None = None
        self.broker: Broker | None = None  # What handlers use.
        self._values = parts.values
        self._node_id = parts.node_id
        self._loop = parts.process.loop
        self._environment = parts.environment
        self._executor = parts.process.executor
        self._supervisor = parts.process.supervisor
        self._feed = parts.feed
        self._logs = parts.logs
        self._peers = parts.peers
        self._dynamic = DynamicConfigs(
            parts.configs, parts.logs, parts.replicas.throttle, parts.locks.configure
        )
        self._patience_s = SESSIONS_WAITED * parts.values[BROKER_SESSION_TIMEOUT_MS] / 1000
        self._membership = Membership(parts, self._patience_s)
        self._registration: Registration | None = None
        # Callable from any thread.
        self.readiness = Readiness(self._node_id, self.image, self._loop)
        self._metrics: MetricsServer | None = None
        self._claims: set[Claim] = set()  # Those already reported.

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where it listens, with the bound ports."""
        return self._bound.endpoints

    @property
    def _bound(self) -> Server:
        assert self.server is not None
        return self.server

    @property
    def metrics_port(self) -> int | None:
        """The port of /metrics; None if it is not served."""
        return None if self._metrics is None else self._metrics.port

    @property
    def metrics_url(self) -> str | None:
        """For this machine."""
        return None if self._metrics is None else self._metrics.url

    async def start(self) -> None:
        """Returns when clients can be served. Raises StartError.

        A node that waits for others may wait for long; cancelling this stops it.
        """
        loading = None
        self._open_metrics()
        try:
            if self._parts.locks.has_files:
                await self._parts.process.in_thread(self._parts.locks.load)
            cluster_id = await self._membership.cluster_id()
            if cluster_id is None:
                await self._begin_cluster()
            loading = self._parts.process.in_thread(self._logs.start, self._node_id, cluster_id)
            await asyncio.shield(loading)
        except (
            StorageError,
            WrongDirectory,
            CannotJoin,
            TlsError,
            UsersFileError,
            OSError,
        ) as error:
            await self._stop_server()
            await self._close_metrics()
            raise start_error(error, self.directories) from error
        except asyncio.CancelledError:
            await self._give_up(loading)
            raise
        try:
            await self._start_on_storage()
        except (StorageError, CorruptLog, CannotJoin, OSError, ValueError, ApiError) as error:
            await self.stop()
            raise StartError(str(error)) from error
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def _begin_cluster(self) -> None:
        """Nothing is written if this raises CannotJoin."""
        directory, listeners = self.directories[0], self._parts.network.listeners
        if not (self._new_cluster or is_loopback(listeners)):
            raise CannotJoin(
                f"{directory} is new. If it should have data, mount its disk. Otherwise say "
                "--join HOST:PORT of a node of the cluster, or, once, --new-cluster to begin one"
            )
        time_s = listening_s(listeners) if self._listens_first else 0.0
        if time_s:
            await self._bind()
            claim = await listen_for_members(self._bound, self._node_id, time_s)
            if claim is not None:
                raise CannotJoin(self._claim_text(claim))
            self._bound.use(_refuse_early)
        await self._membership.begin()

    def _open_metrics(self) -> None:
        if not has_metrics(self._values):
            return
        try:
            from ottla.node.metrics.server import MetricsServer

            self._metrics = metrics = MetricsServer(self.readiness)
            metrics.open(self._values)
        except (OSError, ValueError) as error:
            raise StartError(str(error)) from error

    async def _close_metrics(self) -> None:
        if self._metrics is not None:
            await self._parts.process.in_thread(self._metrics.close)

    async def _bind(self) -> None:
        if self.server is None:
            self.server = self._make_server()
            await self.server.bind()
            self._dynamic.limit(self.server, self._parts.shares.connections)

    async def _give_up(self, loading: "asyncio.Future[None] | None") -> None:
        self._peers.close()
        await self._stop_server()
        await self._close_metrics()
        if loading is not None:
            await asyncio.wait([loading])
            if loading.exception() is None:
                await self._parts.process.in_thread(self._logs.stop)
        self._environment.shut_down()

    async def _start_on_storage(self) -> None:
        await self._bind()
        server = self._bound
        self.quorum = quorum = await self._membership.open_quorum(
            self._advertised(), self._on_claim
        )
        controller = quorum.controller
        self._registration = registration = self._make_registration(controller)
        damaged = connect_replication(self._parts, controller, lambda: registration.epoch)
        coordination = start_coordination(self._parts, controller)
        start_audit(self._parts, controller)
        self.broker = broker = make_broker(self._parts, quorum, registration, coordination)
        server.use(make_early_dispatch(broker, EARLY_API_TABLE))
        if not quorum.is_alone:
            server.start()
        await quorum.start()
        self._supervisor.start("quorum report", quorum.report_no_leader())
        rack = self._values[BROKER_RACK] or None
        protocols = self._parts.locks.protocols
        await registration.register(self._advertised(), rack, self._patience_s, protocols)
        await quorum.applier.reached(registration.epoch + 1)
        take_up_image(self._parts, server, self._dynamic, coordination, quorum)
        report_directories(self._parts, controller, registration, broker.directory_moves)
        await registration.wait_until_unfenced()
        self._supervisor.start("heartbeats", registration.keep_alive())
        self._open_locks()
        server.use(make_dispatch(broker, API_TABLE))
        if quorum.is_alone:
            server.start()
        voting = Voting(
            quorum,
            self._peers,
            self._values[QUORUM_SIZE],
            self.image,
            self._environment.random,
        )
        self._supervisor.start("voting", voting.watch())
        Housekeeping(self._parts, damaged).start()
        if self._metrics is not None:
            from ottla.node.metrics.start import identity, start_metrics

            process = self._metrics.process
            page = start_metrics(self._parts, quorum, broker, server, process)
            self._metrics.serve(page, self._values, identity(broker))
        self.readiness.is_in_touch = broker.is_in_touch
        self.readiness.phase = Phase.SERVING
        warn_of_other_minimum(self._parts.rules.static, self.image)
        logger.info(
            "node %d of cluster %s serves %s with data in %s",
            self._node_id,
            self._logs.log_dirs.cluster_id,
            ", ".join(map(str, self.endpoints)),
            ", ".join(self.directories),
        )

    def _open_locks(self) -> None:
        """From here on the image has users and permissions."""
        locks, authorizer = self._parts.locks, self._parts.authorizer
        locks.open()
        if authorizer is not None:
            authorizer.is_loaded = True
        for keys in locks.token_keys:
            self._supervisor.start("token keys", keys.watch(self._executor))
        if locks.has_files:
            self._supervisor.start("certificates", locks.watch_files(self._executor))

    async def stop(self, *, silently: bool = False) -> None:
        """Everything acknowledged is on disk when this returns.

        Other brokers take over leadership, if there are any. Sessions end before the tasks that
        would serve their requests. With `silently` others notice no more than if the process was
        killed.
        """
        budget_s = self._values[CONTROLLED_SHUTDOWN_TIMEOUT_MS] / 1000
        stopping = Stopping(budget_s, self._loop.time)
        self.readiness.phase = Phase.STOPPING
        if silently:
            self._hang_up()
        elif self._values[CONTROLLED_SHUTDOWN_ENABLE]:
            await stopping.wait("other nodes to take over", self._leave(stopping.left_s))
        await self._close_metrics()
        if self.server is not None:
            await self.server.stop_accepting()
        self.replicas.fail(ApiError(ErrorCode.not_leader_or_follower, "the broker stops"))
        if self.quorum is not None:
            await stopping.wait("the quorum to hear of it", self.quorum.stop())
        grace_s = min(SESSIONS_GRACE_S, stopping.left_s)
        await stopping.wait("clients to read their answers", self._stop_server(grace_s))
        self._peers.close()
        await stopping.wait("its tasks to end", self._supervisor.stop())
        closing = self._parts.process.in_thread(self._close_storage)
        await stopping.wait("the disk, to close the logs", closing)
        self._environment.shut_down()
        logger.info("node %d has stopped", self._node_id)

    def _hang_up(self) -> None:
        self._peers.close()
        for session in self.server.sessions if self.server is not None else ():
            session.abort("the node dies")

    async def _stop_server(self, grace_s: float = SESSIONS_GRACE_S) -> None:
        if self.server is not None:
            await self.server.stop(grace_s)

    async def _leave(self, timeout_s: float) -> None:
        if self._registration is not None and self.quorum is not None:
            leadership, image = self.quorum.leadership, self.image
            address_of = self._parts.brokers.address_of
            remaining = Remaining(self._node_id, leadership, image, self._peers, address_of)
            await leave_in_order(
                self._registration.leave, remaining.others, remaining.controller, timeout_s
            )

    def _make_registration(self, controller: Controller) -> Registration:
        identity = BrokerIdentity(
            self._node_id,
            self._logs.log_dirs.cluster_id,
            self._environment.new_uuid(),
            tuple(filter(None, self._logs.log_dirs.ids.values())),
            self._logs.log_dirs.previous_broker_epoch,
        )
        return Registration(
            controller=controller,
            identity=identity,
            metadata_offset=lambda: self._feed.offset,
            heartbeat_interval_ms=self._values[BROKER_HEARTBEAT_INTERVAL_MS],
            on_epoch=self._remember_broker_epoch,
            offline_log_dirs=lambda: self._logs.log_dirs.offline_ids,
            full_log_dirs=lambda: self._logs.log_dirs.full_ids,
            alone_interval_ms=alone_interval(self._values, self.image, self._node_id),
        )

    def _remember_broker_epoch(self, epoch: int) -> None:
        """With flush.policy=ack a crash loses nothing that this broker claimed to have."""
        self._logs.log_dirs.broker_epoch = epoch
        if self._values[FLUSH_POLICY] == FlushPolicy.ACK.value:
            self._executor.submit(self._logs.log_dirs.write_broker_epoch)

    def _close_storage(self) -> None:
        if self.quorum is not None:
            try:
                self.quorum.close()
            except (ApiError, StorageError, OSError) as error:
                logger.warning("the metadata log was not closed cleanly: %s", error)
        self._logs.stop()

    def _make_server(self) -> Server:
        parts = self._parts
        return Server(
            parts.network,
            _refuse_early,
            monotonic_ms=self._environment.clock.monotonic_ms,
            executor=self._executor,
            login_executor=self._environment.login_executor,
            security=parts.locks.listeners,
            new_socket=self._environment.new_socket,
        )

    def _advertised(self) -> tuple[Endpoint, ...]:
        """The listener for other nodes comes first."""
        endpoints = advertised_endpoints(
            self.endpoints,
            self._parts.network.advertised_listeners,
            self._environment.host_name,
        )
        of_nodes = self._parts.locks.inter_broker_listener
        return tuple(sorted(endpoints, key=lambda endpoint: endpoint.listener_name != of_nodes))

    def _on_failure(self, error: BaseException) -> None:
        """A bug: stop rather than continue with wrong state."""
        logger.critical("the node stops: %s", error)
        self.failed.set()

    def _on_claim(self, claim: Claim) -> None:
        """A node that another cluster claims acknowledges nothing more."""
        quorum, text = self.quorum, self._claim_text(claim)
        if self.failed.is_set() or quorum is None:
            return
        if not quorum.is_alone or set(self.image.brokers) - {self._node_id}:
            if claim not in self._claims:
                self._claims.add(claim)
                logger.error("this node's cluster has other nodes, so it continues, but %s", text)
            return
        self._on_failure(CannotJoin(text))
        self._bound.use(_refuse_early)
        for session in self._bound.sessions:
            session.abort("the node stops")
        filesystem = self._environment.filesystem
        self._executor.submit(save_claim, filesystem, self.directories[0], text)

    def _claim_text(self, claim: Claim) -> str:
        endpoint = self._advertised()[0]
        address = Address(endpoint.host, endpoint.port)
        return claim_text(claim, self._node_id, address, self.directories[0])

    def _on_directory_failure(self, error: StorageError) -> None:
        self._loop.call_soon_threadsafe(self._give_up_directory, error)

    def _on_full_directory(self) -> None:
        """A directory is full, or has room again."""
        self._loop.call_soon_threadsafe(self._hurry)

    def _hurry(self) -> None:
        if self._registration is not None:
            self._registration.hurry()

    def _give_up_directory(self, error: StorageError) -> None:
        self.replicas.on_directory_failure(error)
        self._hurry()
        others = [
            broker for broker in self.image.active_brokers() if broker.broker_id != self._node_id
        ]
        has_metadata = error.directory == self.directories[0]
        if (self._logs.log_dirs.is_offline or has_metadata) and others:
            self._on_failure(error)  # They can do what this node no longer can.
