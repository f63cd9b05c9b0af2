"""A node whose disk syncs slowly, as if others kept it busy.

    python -m tests.cluster.faults.slow_syncs FILE serve --data DATA ...

Once FILE exists, each sync is delayed by a random time: on average the milliseconds in FILE, at
most `SLOWEST` times that. Reads and writes are not delayed.
"""

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ottla.cli.main import main

SLOWEST: Final = 8


def _slowed(sync: Callable[[int], None], setting: Path) -> Callable[[int], None]:
    def slow_sync(descriptor: int) -> None:
        sync(descriptor)
        if setting.exists():
            mean_s = int(setting.read_text() or 0) / 1000
            time.sleep(min(random.expovariate(1 / mean_s), SLOWEST * mean_s) if mean_s else 0)

    return slow_sync


def _run(setting: Path) -> None:
    for name in ("fdatasync", "fsync"):
        setattr(os, name, _slowed(getattr(os, name), setting))
    main()


if __name__ == "__main__":
    _run(Path(sys.argv.pop(1)))
