"""The command line: `python -m benchmarks [SUITE ...]`; see `--help`."""

import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import cyclopts
from confluent_kafka import KafkaException
from rich.console import Console

from benchmarks import processes, report
from benchmarks.bench import FULL, QUICK, QUICK_AGAINST, Bench, LoadFailed
from benchmarks.catalogue import ESSENTIAL, SUITES, Scenario
from benchmarks.machine import describe_machine, is_busy
from benchmarks.peers.elasticmq import ElasticMq
from benchmarks.peers.kafka import Kafka
from benchmarks.peers.nats import Nats
from benchmarks.peers.ottla import Ottla
from benchmarks.peers.peer import Peer, Unavailable
from benchmarks.peers.rabbitmq import RabbitMq

HERE = Path(__file__).parent
CACHE = HERE / ".cache"
# A broker may fail a scenario; the others still run.
FAILURES = (LoadFailed, KafkaException, OSError, RuntimeError)
BUSY = "Other work ran on the machine when this began: figures and verdicts are preliminary."

Names = Annotated[list[str] | None, cyclopts.Parameter(consume_multiple=True)]


def main(
    *suites: str,
    quick: bool = False,
    against: str | None = None,
    only: Names = None,
    peers: Names = None,
    write: bool = False,
) -> None:
    """Measures Ottla, next to Apache Kafka where that is available.

    Parameters
    ----------
    suites
        What to measure: broker, coordinators, cluster, http, client, security; all by default,
        with --quick the essential scenarios of broker and coordinators.
    quick
        Short rounds, and fewer rows; under five minutes unless suites or scenarios are named.
    against
        A git revision: compare the source tree with it, and with nothing else.
    only
        The scenarios to run; all of a suite by default.
    peers
        The brokers to measure: ottla, kafka, nats, rabbitmq, elasticmq.
    write
        Write the results even if only part of a suite ran; a whole suite is always written.
    """
    if quick and not suites:
        only = only or list(ESSENTIAL)
    chosen = _chosen(suites or tuple(SUITES), only)
    processes.raise_open_files_limit()
    console = Console()
    CACHE.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    ottla = Ottla(warm_seconds=1 if quick else 3)
    known: list[Peer] = [ottla]
    guests: list[Peer] = []
    if against:
        known.append(Ottla(warm_seconds=1 if quick else 3, revision=against))
        peers = peers and [*peers, known[1].name]
    else:
        if chosen.keys() != {"http"}:
            known.append(Kafka(warm_seconds=5 if quick else 20))
        guests.append(Nats())
        if "http" in chosen:
            guests += [RabbitMq(), ElasticMq(on_disk=True), ElasticMq(on_disk=False)]
    guests = [peer for peer in guests if not peers or peer.name in peers]
    wanted = [peer for peer in known if not peers or peer.name in peers]
    available = [peer for peer in wanted if _prepared(peer, console)]
    available_guests: list[Peer] = [peer for peer in guests if _prepared(peer, console)]
    failures = []
    for suite, scenarios in chosen.items():
        directory = Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
        effort = (QUICK_AGAINST if against else QUICK) if quick else FULL
        bench = Bench(available, available_guests, effort, directory, console.log)
        text, failed = _measure(suite, scenarios, bench, console)
        if write or not (quick or only or peers or against):
            (HERE / f"RESULTS-{suite.upper()}.md").write_text(text)
        failures += failed
    if failures:
        sys.exit(f"failed: {', '.join(failures)}")


def _chosen(suites: Iterable[str], only: list[str] | None) -> dict[str, dict[str, Scenario]]:
    """The scenarios to run, by suite; suites without any are left out."""
    known = {name for scenarios in SUITES.values() for name in scenarios}
    for what, names, there in (("suite", suites, SUITES), ("scenario", only or (), known)):
        if unknown := set(names) - set(there):
            sys.exit(f"unknown {what} {', '.join(unknown)}; there are {', '.join(sorted(there))}")
    wanted = set(only or known)
    by_suite = {
        suite: {name: run for name, run in SUITES[suite].items() if name in wanted}
        for suite in suites
    }
    return {suite: scenarios for suite, scenarios in by_suite.items() if scenarios}


def _measure(
    suite: str, scenarios: dict[str, Scenario], bench: Bench, console: Console
) -> tuple[str, list[str]]:
    """Runs them; returns the document and the names of those that failed."""
    facts = describe_machine(CACHE)
    for peer in bench.peers + bench.guests:
        facts |= peer.settings()
    remarks = [BUSY] if is_busy() else []
    failures = []
    try:
        for name, run in scenarios.items():
            try:
                run(bench)
            except FAILURES as error:
                console.log(f"{name} failed: {error}", markup=False)
                failures.append(name)
                remarks.append(f"{name} did not finish: {str(error).strip().splitlines()[-1]}")
    finally:
        bench.close()
        shutil.rmtree(bench.directory)
        report.show(bench.results, console)
    introduction = report.INTRODUCTIONS.get(suite, report.INTRODUCTION).format(suite=suite)
    return report.as_markdown(bench.results, facts, remarks, introduction), failures


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
