"""One run: a cluster, its clients, the faults, and the checks.

First the cluster starts and topics are created. Then clients work while faults happen. At last the
faults end, the cluster must recover, clients finish, and everything is read and checked.
"""

from collections.abc import Callable, Iterable, Sequence

from ottla.raft.config import ELECTION_TIMEOUT_MS
from ottla.runtime.config import QUORUM_SIZE
from ottla.testing.simulator.checkers.all import all_checkers
from ottla.testing.simulator.checkers.checker import Checker, FinalState, History
from ottla.testing.simulator.clients.operator import OPERATIONS
from ottla.testing.simulator.faults import FAULTS, Faults
from ottla.testing.simulator.log_lines import traced_logging
from ottla.testing.simulator.log_view import logs_of
from ottla.testing.simulator.membership import Membership
from ottla.testing.simulator.network import Network
from ottla.testing.simulator.profile import Profile, draw_profile
from ottla.testing.simulator.scheduler import Scheduler
from ottla.testing.simulator.simulated_client import SimulatedClient
from ottla.testing.simulator.violation import Stalled
from ottla.testing.simulator.workloads import Workloads

START_S_MAX = 30.0
FINISH_S_MAX = 120.0
LOOK_INTERVAL_S = 0.1
OVERRIDES = {
    # Silence is noticed soon, so that much happens in little time.
    "broker.session.timeout.ms": "1500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "internal.log.segment.bytes": "20000",
    "log.scrub.interval.ms": "10000",
    "log.flush.offset.checkpoint.interval.ms": "5000",
    "group.initial.rebalance.delay.ms": "500",
    "group.consumer.min.session.timeout.ms": "4000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
}


def profile_of(seed: int) -> Profile:
    return draw_profile(Scheduler(seed).chance("profile"), FAULTS, OPERATIONS)


class Cluster:
    def __init__(
        self,
        seed: int,
        profile: Profile,
        checkers: Sequence[Checker] | None = None,
    ) -> None:
        self.scheduler = Scheduler(seed)
        self.profile = profile
        self.checkers = all_checkers() if checkers is None else list(checkers)
        self.network = Network(self.scheduler)
        self.membership = Membership(
            self.network,
            OVERRIDES
            | {
                ELECTION_TIMEOUT_MS.name: str(self.profile.election_timeout_ms),
                QUORUM_SIZE.name: str(self.profile.quorum_size),
            },
            self.profile.nodes_count,
            self.profile.quorum_size,
        )
        self._workloads = Workloads(
            self.network,
            self.profile,
            History(self.checkers, self.scheduler.counts),
            self.membership,
            lambda client: self._start([client]),
        )
        self._clients: list[SimulatedClient] = []

    def run(self) -> None:
        """Raises Violation, Stalled, or what the simulated code raised."""
        with traced_logging(self.scheduler):
            try:
                self._run()
            except BaseException as error:
                self.scheduler.fail(error)
                raise
            finally:
                self._dispose()

    def _run(self) -> None:
        self.scheduler.tell("simulator", str(self.profile))
        membership = self.membership
        for node in membership.nodes:
            node.start()
        self._wait(lambda: membership.all_serve, START_S_MAX, "start")
        self._start([self._workloads.topics()])
        self._finish(START_S_MAX, "create the topics")
        operators = list(self._workloads.operator())
        self._start([*self._workloads.all(), *operators])
        faults = self._start_faults()
        self._look()
        self.scheduler.run_until(self.scheduler.now + self.profile.duration_s)
        faults.stop()
        self._stop(operators)
        self._wait(lambda: membership.is_whole, FINISH_S_MAX, "become whole again")
        self._stop(self._clients)
        self._wait(lambda: membership.is_whole, FINISH_S_MAX, "stay whole")
        self._check_end()

    def _stop(self, clients: Sequence[SimulatedClient]) -> None:
        """They end what they have begun."""
        for client in clients:
            client.stop()
        self._wait(lambda: not any(each.is_working for each in clients), FINISH_S_MAX, "finish")

    def _check_end(self) -> None:
        final = FinalState(nodes=self.membership.nodes)
        self._start([self._workloads.final(final)])
        self._finish(FINISH_S_MAX, "read everything")
        for checker in self.checkers:
            checker.check_end(final)

    def _start(self, clients: Iterable[SimulatedClient]) -> None:
        for client in clients:
            self._clients.append(client)
            client.start()

    def _start_faults(self) -> Faults:
        faults = Faults(
            self.network,
            self.membership,
            self._clients,
            self.profile,
        )
        faults.start()
        return faults

    def _look(self) -> None:
        for node in self.membership.nodes:
            if node.serving and node.node is not None:
                logs = list(logs_of(node.node))
                for checker in self.checkers:
                    checker.look(node, logs)
        self.scheduler.call_later(LOOK_INTERVAL_S, self._look)

    def _finish(self, seconds_max: float, what: str) -> None:
        self._wait(lambda: not self._working(), seconds_max, what)

    def _working(self) -> list[str]:
        return [client.name for client in self._clients if client.is_working]

    def _wait(self, done: Callable[[], bool], seconds_max: float, what: str) -> None:
        deadline = self.scheduler.now + seconds_max
        while not done() and self.scheduler.now < deadline:
            self.scheduler.run_until(self.scheduler.now + LOOK_INTERVAL_S)
        if not done():
            who = [*self.membership.missing(), *self._working()]
            raise Stalled(f"did not {what} within {seconds_max} s: {', '.join(who)}")

    def _dispose(self) -> None:
        for host in self.network.hosts.values():
            host.dispose()
