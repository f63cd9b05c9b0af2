"""One run of the demonstration: start, load, kill, restart, and count what was read."""

import contextlib
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla.cli.demo.demo_cluster import NODES, START_TIMEOUT_S, DemoCluster
from ottla.cli.demo.failover_view import Standing, View, open_view
from ottla.cli.demo.leader_watch import LeaderWatch
from ottla.cli.demo.ledger import Ledger
from ottla.cli.demo.traffic import PARTITIONS, TOPIC, Reader, Writer
from ottla.cli.errors import CommandError, ExitCode
from ottla.cli.output import print_json
from ottla.client.wire.errors import WireError

KILL_AT = 0.3  # Of the time.
RESTART_AT = 0.65
DRAIN_TIMEOUT_S = 60.0
_FRAME_S = 0.2


def run_failover(seconds: float, rate: int, *, is_live: bool, as_json: bool) -> int:
    """Returns the exit code."""
    with (
        _interrupts() as interrupted,
        tempfile.TemporaryDirectory(prefix="ottla-demo-") as directory,
        DemoCluster(Path(directory), interrupted) as cluster,
        open_view(cluster, is_live=is_live, is_silent=as_json) as view,
    ):
        demonstration = Demonstration(cluster, view, interrupted, seconds, rate)
        try:
            demonstration.run()
        except WireError as error:
            raise CommandError(f"the cluster does not answer: {error}") from error
        outcome = demonstration.outcome()
        view.summarize(outcome)
    if as_json:
        print_json(outcome)
    return ExitCode.OK if outcome["passed"] else ExitCode.FAILED


@contextlib.contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Set by Ctrl-C and its like: the load ends early, and what was written is still counted."""
    interrupted = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, lambda *_: interrupted.set()) for number in numbers}
    try:
        yield interrupted
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class Demonstration:
    def __init__(
        self,
        cluster: DemoCluster,
        view: View,
        interrupted: threading.Event,
        seconds: float,
        rate: int,
    ) -> None:
        self._cluster = cluster
        self._view = view
        self._interrupted = interrupted
        self._seconds = seconds
        self._rate = rate
        self._ledger = Ledger(PARTITIONS)
        self._watch = LeaderWatch(cluster, TOPIC)
        self._began_s = 0.0
        self._lasted_s = 0.0
        self._killed: int | None = None
        self._killed_s = 0.0
        self._failover_s: float | None = None
        self._restarted = False

    def run(self) -> None:
        self._view.tell(0.0, f"starting {NODES} nodes")
        for node_id in self._cluster.node_ids:
            self._cluster.start(node_id)
        self._cluster.wait_until_ready(TOPIC, PARTITIONS)
        writer = Writer(self._cluster.bootstrap, self._ledger, self._rate)
        reader = Reader(self._cluster.bootstrap, self._ledger)
        self._watch.start()
        reader.start()
        try:
            writer.start(START_TIMEOUT_S)
            self._began_s = writer.began_s
            self._tell(f"writing {self._rate:,} records a second to {PARTITIONS} partitions")
            self._load()
            self._tell("waiting for the last records")
            writer.stop(DRAIN_TIMEOUT_S)
            self._drain()
        finally:
            writer.stop(0.0)
            reader.stop()
            self._watch.stop()

    def outcome(self) -> dict[str, Any]:
        """What the summary and JSON say."""
        ledger, latency = self._ledger, self._ledger.latency()
        faults = (ledger.lost_count, ledger.duplicate_count, ledger.disorder_count)
        was_tried = ledger.acknowledged_count > 0
        return {
            "passed": was_tried and not any(faults),
            "interrupted": self._interrupted.is_set(),
            "seconds": round(self._lasted_s, 1),
            "written": ledger.sent_count,
            "acknowledged": ledger.acknowledged_count,
            "failed": ledger.failed_count,
            "read": ledger.read_count,
            "lost": ledger.lost_count,
            "duplicated": ledger.duplicate_count,
            "out_of_order": ledger.disorder_count,
            "records_per_second": round(ledger.acknowledged_count / max(self._lasted_s, 0.1)),
            "latency_median_ms": latency and round(latency.median, 1),
            "latency_p99_ms": latency and round(latency.p99, 1),
            "latency_max_ms": latency and round(latency.longest, 1),
            "longest_pause_s": round(ledger.longest_pause_s, 2),
            "killed_node": self._killed,
            "failover_s": None if self._failover_s is None else round(self._failover_s, 2),
        }

    def _load(self) -> None:
        while self._passed_s() < self._seconds and not self._interrupted.wait(_FRAME_S):
            passed_s = self._passed_s()
            if self._killed is None and passed_s >= KILL_AT * self._seconds:
                self._kill()
            if not self._restarted and passed_s >= RESTART_AT * self._seconds:
                self._restart()
            self._look_for_failover()
            self._show()
        self._lasted_s = self._passed_s()

    def _drain(self) -> None:
        deadline = time.monotonic() + DRAIN_TIMEOUT_S
        while self._ledger.lag and time.monotonic() < deadline:
            time.sleep(_FRAME_S)
            self._look_for_failover()
            self._show()

    def _kill(self) -> None:
        leader = self._watch.leaders.get(0, -1)
        pid = self._cluster.pid(leader) if leader in self._cluster.node_ids else None
        if pid is None:
            return  # Nobody leads just now; the next frame looks again.
        led = self._watch.led_count(leader)
        self._killed, self._killed_s = leader, time.monotonic()
        self._cluster.kill(leader)
        self._tell(f"kill -9 {pid}: node {leader}, which led {led} of {PARTITIONS} partitions")

    def _restart(self) -> None:
        if self._killed is not None:
            self._restarted = True
            self._cluster.start(self._killed)
            self._tell(f"starting node {self._killed} again")

    def _look_for_failover(self) -> None:
        if self._killed is None or self._failover_s is not None:
            return
        leaders = set(self._watch.leaders.values())
        if self._watch.asked_s > self._killed_s and not leaders & {self._killed, -1}:
            self._failover_s = self._watch.asked_s - self._killed_s
            self._tell(f"its partitions have new leaders after {self._failover_s:.2f} s")

    def _passed_s(self) -> float:
        return time.monotonic() - self._began_s

    def _tell(self, text: str) -> None:
        self._view.tell(self._passed_s(), text)

    def _show(self) -> None:
        self._view.show(Standing(self._passed_s(), self._seconds, self._ledger, self._watch))
