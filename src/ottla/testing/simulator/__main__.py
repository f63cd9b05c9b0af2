"""`ottla-sim`: simulate a cluster, from one seed or from many."""

import argparse
import math
import os
import random
import sys
import time
from itertools import takewhile

from ottla.testing.simulator.faults import FAULTS
from ottla.testing.simulator.plants import PLANTS
from ottla.testing.simulator.runner import Variant, run_seed, run_seeds
from ottla.testing.simulator.summary import Summary

SEEDS_COUNT_MAX = 1_000_000_000
PROGRESS_S = 60.0
HASH_SEED = "0"  # The order of sets of text must not differ from run to run.


def main() -> int:
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        command = [sys.executable, "-m", "ottla.testing.simulator", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": HASH_SEED})
    options = _parse()
    if options.seed is not None:
        return _run_one(options.seed, _variant(options), show=not options.quiet)
    return _run_many(options)


def _variant(options: argparse.Namespace) -> Variant:
    return Variant(*(getattr(options, name) for name in Variant._fields))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ottla-sim", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one, and show what happens")
    parser.add_argument("--quiet", action="store_true", help="with --seed: show only the outcome")
    parser.add_argument("--count", type=int, default=100, help="run so many")
    parser.add_argument(
        "--first",
        type=int,
        default=random.SystemRandom().randrange(SEEDS_COUNT_MAX),
        help="begin with this seed; by default with any",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="run so many at a time"
    )
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="begin no seed after this long"
    )
    parser.add_argument(
        "--until-failure", action="store_true", help="begin no seed after one has failed"
    )
    parser.add_argument("--plant", choices=PLANTS, help="put this bug in, to see that it is found")
    parser.add_argument(
        "--fault", choices=FAULTS, help="let this kind of fault come in each run, beside its own"
    )
    parser.add_argument(
        "--queue-workers",
        type=int,
        default=0,
        metavar="COUNT",
        help="let so many consumers work on a share group in each run",
    )
    parser.add_argument(
        "--queue-order",
        action="store_true",
        help="with --queue-workers: give them the records of a key one at a time and in order",
    )
    parser.add_argument(
        "--absent",
        type=int,
        choices=(1, 2),
        metavar="NODES",
        help="nothing but this: one or two of three nodes are gone, for a quarter of an hour",
    )
    parser.add_argument(
        "--duration",
        type=float,
        metavar="SECONDS",
        help="let faults come for so long in each run; by default for 30 to 120 s, by its seed",
    )
    return parser.parse_args()


def _run_one(seed: int, variant: Variant, *, show: bool) -> int:
    outcome, lines = run_seed(seed, variant)
    if show:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    if outcome.failure:
        sys.stdout.write(outcome.details)
    ending = f"failed: {outcome.failure}" if outcome.failure else "passed"
    sys.stdout.write(f"seed {seed} {ending}\ntrace {outcome.digest}\n")
    return 1 if outcome.failure else 0


def _run_many(options: argparse.Namespace) -> int:
    """Run until all seeds are done or the time is up; seeds that have started then finish."""
    summary = Summary(_variant(options))
    reported = time.monotonic()
    deadline = reported + options.seconds
    seeds = range(options.first, options.first + options.count)
    in_time = takewhile(
        lambda _: time.monotonic() < deadline and not (options.until_failure and summary.failed),
        seeds,
    )
    try:
        for outcome in run_seeds(in_time, options.jobs, summary.variant):
            summary.add(outcome)
            if time.monotonic() > reported + PROGRESS_S:
                reported = time.monotonic()
                sys.stderr.write(f"{summary.progress}\n")
            if outcome.failure:
                sys.stdout.write(
                    f"seed {outcome.seed} failed: {outcome.failure}\n"
                    f"  repeat with: {summary.repeat_command(outcome.seed)}\n"
                )
                sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stdout.write("interrupted\n")
    sys.stdout.writelines(f"{line}\n" for line in summary.lines())
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
