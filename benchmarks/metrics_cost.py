"""What counting costs: `python -m benchmarks.metrics_cost`, on a quiet machine.

Three brokers take turns: `off` serves no metrics, `on` is scraped every second, `uncounted` is
`off` without counting requests and durations. Each round sends the same load to each, and compares
their processor time per request. Then `off` and `on` get a topic of a thousand partitions: the
difference of their memory, how long a scrape takes, and the worst time of sequential requests
meanwhile. At last a node in this process is scraped while its event loop turns without a pause: the
processor time that the scrape took between two turns is what it held the loop up for, whatever else
the machine did (`--blocking` measures this alone). Under `chrt --rr 10` other work does not disturb
the figures.
"""

import asyncio
import json
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from benchmarks.processes import resident_bytes, spawn, stop
from ottla.node.metrics.page import Page
from ottla.node.node_process import settle_interpreter
from ottla.testing import EmbeddedBroker

ROUNDS, SECONDS = 6, 1.5
PARTITIONS, SCRAPES = 1_000, 20
WAIT_S = 60.0
_UNCOUNTED = (
    "from ottla.network.durations import Durations; Durations.add = lambda *_: None; "
    "from ottla.network.answers import Answers; "
    "Answers._end_run = lambda self: setattr(self, '_run_count', 0); "
    "from ottla.cli.main import main; import sys; sys.argv[0] = 'ottla'; main()"
)
_API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")


class Broker:
    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.port, self.metrics_port = _free_port(), _free_port()
        program = ["-c", _UNCOUNTED] if name == "uncounted" else ["-m", "ottla"]
        has_metrics = name == "on"
        self.process = spawn(
            [
                *(sys.executable, *program, "serve", "--port", str(self.port)),
                *("--data", str(directory / name), "--set", "flush.policy=os"),
                *("--set", f"metrics.port={self.metrics_port if has_metrics else -1}"),
            ],
            directory / f"{name}.log",
        )
        _wait_for(self.port)

    def call(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "ottla", *arguments, "-b", f"127.0.0.1:{self.port}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def cost_us(self, in_flight: int) -> tuple[float, float]:
        """Processor time per request, and requests per second."""
        before = _cpu_s(self.process.pid)
        command = [sys.executable, "-m", "benchmarks.loads.raw_produce", "--topic", "load"]
        command += ["--address", f"127.0.0.1:{self.port}", "--in-flight", str(in_flight)]
        done = subprocess.run(
            [*command, "--seconds", str(SECONDS)], check=True, capture_output=True, text=True
        )
        figures = json.loads(done.stdout.splitlines()[-1])
        spent_s = _cpu_s(self.process.pid) - before
        return spent_s / (figures["bytes"] / 100) * 1e6, figures["requests_per_second"]

    def scrape(self) -> float:
        began = time.perf_counter()
        with urllib.request.urlopen(f"http://localhost:{self.metrics_port}/metrics") as page:
            page.read()
        return time.perf_counter() - began


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"nothing listens on {port}")


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


class Scraper:
    """Scrapes every second inside the `with` block."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(1.0):
            self._broker.scrape()


def measure_produce(brokers: dict[str, Broker]) -> None:
    for broker in brokers.values():
        broker.call("topics", "create", "load", "--partitions", "1")
    for in_flight in (50, 1):
        costs: dict[str, list[float]] = {name: [] for name in brokers}
        rates: dict[str, list[float]] = {name: [] for name in brokers}
        for number in range(ROUNDS + 1):
            for name in list(brokers)[number % 3 :] + list(brokers)[: number % 3]:
                with Scraper(brokers["on"]):
                    cost, rate = brokers[name].cost_us(in_flight)
                if number:  # The first round is a warm-up.
                    costs[name].append(cost)
                    rates[name].append(rate)
        for name in brokers:
            against = [a / b for a, b in zip(costs[name], costs["off"], strict=True)]
            print(
                f"{in_flight} in flight, {name}: {statistics.median(costs[name]):.2f} us,"
                f" {statistics.median(rates[name]):,.0f}/s, cost against off"
                f" {statistics.median(against):.3f} ({min(against):.3f} to {max(against):.3f})",
                flush=True,
            )


def measure_scrapes(off: Broker, on: Broker) -> None:
    for broker in (off, on):
        broker.call("topics", "create", "wide", "--partitions", str(PARTITIONS))
    scrapes = [on.scrape() for _ in range(SCRAPES)]
    more = (resident_bytes(on.process.pid) - resident_bytes(off.process.pid)) / 1e6
    print(f"{PARTITIONS} partitions: {more:.1f} MB more than without metrics")
    median_ms, worst_ms = statistics.median(scrapes) * 1e3, max(scrapes) * 1e3
    print(f"a scrape takes {median_ms:.0f} ms ({worst_ms:.0f} at worst)")
    done = threading.Event()
    quiet, _ = _worst_ms(on, threading.Event(), 3.0)
    scraping = threading.Thread(target=lambda: [on.scrape() for _ in range(SCRAPES)] and done.set())
    scraping.start()
    busy, p99 = _worst_ms(on, done, WAIT_S)
    scraping.join()
    print(f"worst request: {quiet:.1f} ms without a scrape, {busy:.1f} (p99 {p99:.1f}) during them")


def _worst_ms(broker: Broker, done: threading.Event, seconds: float) -> tuple[float, float]:
    """The worst and 99th percentile of requests that are answered at once."""
    taken = []
    until = time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", broker.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not done.is_set() and time.monotonic() < until:
            began = time.perf_counter()
            connection.sendall(_API_VERSIONS)
            (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            connection.recv(size, socket.MSG_WAITALL)
            taken.append((time.perf_counter() - began) * 1e3)
    taken.sort()
    return taken[-1], taken[int(len(taken) * 0.99)]


class LoopWatch:
    """The processor time of a scrape between two turns of a busy event loop."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.gaps_ns: list[int] = []
        self._thread_id: int | None = None  # Of the current scrape.

    def around(self, render: Callable[..., bytes]) -> Callable[..., bytes]:
        def watched(page: Page, *, packed: bool = False) -> bytes:
            self._thread_id = threading.get_ident()
            try:
                return render(page, packed=packed)
            finally:
                self._thread_id = None

        return watched

    async def watch(self) -> None:
        known, last_ns = None, 0
        while not self.done.is_set():
            thread_id = self._thread_id
            with suppress(OSError):  # It exited.
                if thread_id is not None:
                    now_ns = time.clock_gettime_ns(time.pthread_getcpuclockid(thread_id))
                    if thread_id == known:
                        self.gaps_ns.append(now_ns - last_ns)
                    last_ns = now_ns
            known = thread_id
            await asyncio.sleep(0)


def measure_blocking() -> None:
    watch = LoopWatch()
    real, Page.render = Page.render, watch.around(Page.render)  # type: ignore[method-assign]
    with EmbeddedBroker(config={"metrics.port": "0"}) as broker:
        command = [sys.executable, "-m", "ottla", "topics", "create", "wide"]
        command += ["--partitions", str(PARTITIONS), "-b", broker.bootstrap_servers]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        thread = broker._nodes[1].thread
        settle_interpreter()
        watching = asyncio.run_coroutine_threadsafe(watch.watch(), thread._loop)
        for _ in range(SCRAPES):
            with urllib.request.urlopen(str(thread.node.metrics_url)) as page:
                page.read()
        watch.done.set()
        watching.result()
    Page.render = real  # type: ignore[method-assign]
    gaps = sorted(watch.gaps_ns)
    print(
        f"the event loop was held up for {gaps[-1] / 1e6:.2f} ms at worst, 99.9 % of"
        f" {len(gaps):,} turns during {SCRAPES} scrapes for less than"
        f" {gaps[int(len(gaps) * 0.999)] / 1e6:.2f}"
    )


def main() -> None:
    if "--blocking" in sys.argv:
        measure_blocking()
        return
    with tempfile.TemporaryDirectory(prefix="ottla-cost-") as text:
        brokers = {name: Broker(name, Path(text)) for name in ("off", "on", "uncounted")}
        try:
            measure_produce(brokers)
            measure_scrapes(brokers["off"], brokers["on"])
        finally:
            for broker in brokers.values():
                stop(broker.process)
    measure_blocking()


if __name__ == "__main__":
    main()
