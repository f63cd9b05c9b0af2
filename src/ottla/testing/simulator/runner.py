"""Runs seeds: one in this process, or many, each in its own process.

A process forked for one seed starts like every other, so nothing is left over from an earlier seed,
and one that hangs can be ended.
"""

import gc
import multiprocessing
import signal
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import connection
from typing import TYPE_CHECKING, NamedTuple

from ottla.testing.simulator.cluster import Cluster, profile_of
from ottla.testing.simulator.faults import NODES_MIN
from ottla.testing.simulator.plants import PLANTS, planted
from ottla.testing.simulator.profile import Profile, absence

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

SECONDS_MAX = 1_200.0  # Of real time; a run takes a few.


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    digest: str
    simulated_s: float
    failure: str = ""  # What went wrong, in one line.
    details: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)  # What happened how often.
    cpu_s: float = 0.0


class _Running(NamedTuple):
    seed: int
    process: "ForkProcess"
    deadline: float


class Variant(NamedTuple):
    """What differs from the run that follows from the seed alone."""

    # Each is an option of the command.
    plant: str | None = None  # A bug to put in (see `plants`).
    duration: float | None = None  # Seconds until faults end.
    absent: int | None = None  # So many of three nodes are gone, and that is all that is.
    fault: str | None = None  # A kind that comes beside those that were drawn, to three nodes.
    queue_workers: int = 0  # Consumers of a share group, beside what was drawn.
    queue_order: bool = False  # They get the records of a key in order.

    def profile(self, seed: int) -> Profile:
        if self.plant:
            drawn = PLANTS[self.plant].profile
        elif self.absent is not None:
            drawn = absence(self.absent)
        else:
            drawn = profile_of(seed)
        if self.fault is not None:
            drawn = replace(
                drawn,
                nodes_count=max(drawn.nodes_count, NODES_MIN),
                faults=tuple(dict.fromkeys((*drawn.faults, self.fault))),
            )
        if self.queue_workers:
            drawn = replace(
                drawn, queue_workers_count=self.queue_workers, queue_order=self.queue_order
            )
        return replace(drawn, duration_s=self.duration or drawn.duration_s)

    @property
    def options(self) -> str:
        """With which the command runs it."""
        given = {
            name.replace("_", "-"): value
            for name, value in self._asdict().items()
            if value != self._field_defaults[name]
        }
        return "".join(
            f" --{name}" if value is True else f" --{name} {value}" for name, value in given.items()
        )


AS_DRAWN = Variant()


def run_seed(seed: int, variant: Variant = AS_DRAWN) -> tuple[Outcome, Sequence[str]]:
    """What came of it, and its trace."""
    gc.collect()
    gc.disable()  # What it would call at some moment must not depend on that moment.
    started_s = time.process_time()
    cluster = Cluster(seed, variant.profile(seed))
    failure = details = ""
    try:
        with planted(variant.plant):
            cluster.run()
    except (Exception, AssertionError) as error:
        failure = f"{type(error).__name__}: {error}"
        details = traceback.format_exc()
    finally:
        gc.enable()
    outcome = Outcome(
        seed,
        cluster.scheduler.trace.digest,
        cluster.scheduler.now,
        failure,
        details,
        dict(cluster.scheduler.counts),
        time.process_time() - started_s,
    )
    return outcome, cluster.scheduler.trace.lines


def run_seeds(seeds: Iterator[int], jobs: int, variant: Variant = AS_DRAWN) -> Iterator[Outcome]:
    """As they end."""
    _warm_up()
    gc.freeze()
    running: dict[Connection, _Running] = {}
    try:
        while True:
            while len(running) < jobs and (seed := next(seeds, None)) is not None:
                receiver, child = _begin(seed, variant)
                running[receiver] = child
            if not running:
                return
            soonest = min(child.deadline for child in running.values())
            ready = connection.wait(list(running), max(0.0, soonest - time.monotonic()))
            late = [each for each, child in running.items() if child.deadline <= time.monotonic()]
            for receiver in [each for each in running if each in ready] or late:
                yield _take(receiver, running.pop(receiver))
    finally:
        for child in running.values():
            child.process.kill()


def _begin(seed: int, variant: Variant) -> "tuple[Connection, _Running]":
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_child, args=(seed, variant, sender))
    process.start()
    sender.close()
    return receiver, _Running(seed, process, time.monotonic() + SECONDS_MAX)


def _take(receiver: "Connection", child: _Running) -> Outcome:
    outcome = Outcome(child.seed, "", 0.0, "the process ended without a result")
    if receiver.poll():
        with suppress(EOFError):
            outcome = receiver.recv()
    elif time.monotonic() >= child.deadline:
        child.process.kill()
        outcome = Outcome(child.seed, "", 0.0, f"no end after {SECONDS_MAX:.0f} s")
    receiver.close()
    child.process.join()
    return outcome


def _run_child(seed: int, variant: Variant, sender: "Connection") -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent ends this process.
    outcome, _ = run_seed(seed, variant)
    sender.send(outcome)


def _warm_up() -> None:
    """Import what a run needs, once for all."""
    Cluster(0, Profile(duration_s=1.0)).run()
