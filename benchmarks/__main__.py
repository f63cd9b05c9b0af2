"""The command line: `python -m benchmarks [--quick] [--only NAME ...] [--peers NAME ...]`."""

import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import cyclopts
from confluent_kafka import KafkaException
from rich.console import Console

from benchmarks import processes, report
from benchmarks.bench import FULL, QUICK, Bench, LoadFailed
from benchmarks.catalogue import SCENARIOS
from benchmarks.machine import describe_machine, is_busy
from benchmarks.peers.kafka import Kafka
from benchmarks.peers.nats import Nats
from benchmarks.peers.ottla import Ottla
from benchmarks.peers.peer import Peer, Unavailable

HERE = Path(__file__).parent
CACHE = HERE / ".cache"
RESULTS = HERE / "RESULTS.md"
# What a broker may do to a scenario; the others run all the same.
FAILURES = (LoadFailed, KafkaException, OSError, RuntimeError)
BUSY = "Other work ran on the machine when this began: figures and verdicts are preliminary."

Names = Annotated[list[str] | None, cyclopts.Parameter(consume_multiple=True)]


def main(
    *, quick: bool = False, only: Names = None, peers: Names = None, write: bool = False
) -> None:
    """Measures Ottla, beside Apache Kafka where it can be had.

    Parameters
    ----------
    quick
        One short round of the essential rows, in a few minutes.
    only
        The scenarios to run; all by default.
    peers
        The brokers to measure: ottla, kafka, nats.
    write
        Write benchmarks/RESULTS.md even after a part of the run; a whole run always does.
    """
    unknown = set(only or ()) - set(SCENARIOS)
    if unknown:
        sys.exit(f"unknown scenario {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    processes.raise_open_files_limit()
    console = Console()
    CACHE.mkdir(exist_ok=True)
    guests = [Nats()] if not peers or Nats.name in peers else []
    known: list[Peer] = [
        Ottla(warm_seconds=1 if quick else 3),
        Kafka(warm_seconds=5 if quick else 20),
    ]
    wanted = [peer for peer in known if not peers or peer.name in peers]
    available = [peer for peer in wanted if _prepared(peer, console)]
    facts = describe_machine(CACHE)
    available_guests: list[Peer] = [peer for peer in guests if _prepared(peer, console)]
    for peer in available + available_guests:
        facts |= peer.settings()
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
    bench = Bench(available, available_guests, QUICK if quick else FULL, directory, console.log)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    remarks = [BUSY] if is_busy() else []
    failures = []
    try:
        for name in only or SCENARIOS:
            try:
                SCENARIOS[name](bench)
            except FAILURES as error:
                console.log(f"{name} failed: {error}", markup=False)
                failures.append(name)
                remarks.append(f"{name} did not finish: {str(error).strip().splitlines()[-1]}")
    finally:
        bench.close()
        shutil.rmtree(directory)
        report.show(bench.results, console)
    if write or not (quick or only or peers):
        RESULTS.write_text(report.as_markdown(bench.results, facts, remarks))
    if failures:
        sys.exit(f"failed: {', '.join(failures)}")


def _prepared(peer: Peer, console: Console) -> bool:
    console.log(f"preparing {peer.name}")
    try:
        peer.prepare(CACHE)
    except Unavailable as reason:
        console.log(f"{peer.name} is left out: {reason}")
        return False
    return True


if __name__ == "__main__":
    cyclopts.run(main)
