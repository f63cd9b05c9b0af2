"""`ottla-sim`: a cluster in simulation, from one seed or from many."""

import argparse
import os
import random
import sys
import time

from ottla.testing.simulator.runner import run_seed, run_seeds

SEEDS_COUNT_MAX = 1_000_000_000
HASH_SEED = "0"  # The order of sets of text must not differ from run to run.


def main() -> int:
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        command = [sys.executable, "-m", "ottla.testing.simulator", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": HASH_SEED})
    options = _parse()
    if options.seed is not None:
        return _run_one(options.seed, show=not options.quiet)
    return _run_many(options.first, options.count, options.jobs)


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
    parser.add_argument("--jobs", type=int, default=2, help="run so many at a time")
    return parser.parse_args()


def _run_one(seed: int, *, show: bool) -> int:
    outcome, lines = run_seed(seed)
    if show:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    if outcome.failure:
        sys.stdout.write(outcome.details)
    ending = f"failed: {outcome.failure}" if outcome.failure else "passed"
    sys.stdout.write(f"seed {seed} {ending}\ntrace {outcome.digest}\n")
    return 1 if outcome.failure else 0


def _run_many(first: int, count: int, jobs: int) -> int:
    started = time.monotonic()
    failures_count = 0
    simulated_s = 0.0
    for outcome in run_seeds(iter(range(first, first + count)), jobs):
        simulated_s += outcome.simulated_s
        if outcome.failure:
            failures_count += 1
            sys.stdout.write(
                f"seed {outcome.seed} failed: {outcome.failure}\n"
                f"  repeat with: {sys.executable} -m ottla.testing.simulator "
                f"--seed {outcome.seed}\n"
            )
            sys.stdout.flush()
    sys.stdout.write(
        f"seeds {first} to {first + count - 1}: {count - failures_count} passed, "
        f"{failures_count} failed; {simulated_s:.0f} simulated seconds in "
        f"{time.monotonic() - started:.0f} s\n"
    )
    return 1 if failures_count else 0


if __name__ == "__main__":
    sys.exit(main())
