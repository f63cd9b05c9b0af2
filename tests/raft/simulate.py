"""Run seeds: `python -m tests.raft.simulate SEED` shows one, `--count N` runs the next N."""

import argparse
import sys

from tests.raft.cluster import Cluster


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, default=1)
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.count):
        cluster = Cluster(seed)
        try:
            cluster.run()
        except AssertionError as error:
            print(*cluster.lines, sep="\n")
            print(f"{cluster.faults}\nseed {seed}: {type(error).__name__}: {error}")
            raise
        if options.count == 1:
            print(*cluster.lines, sep="\n")
            print(cluster.faults)
    print(f"{options.count} seeds passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
