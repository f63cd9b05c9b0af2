"""A node whose disk takes long to sync, as one does that others keep busy.

    python -m tests.cluster.faults.slow_syncs FILE serve --data DATA ...

From when FILE exists, each sync takes longer by a time of chance, of as many milliseconds on the
average as FILE says, and at most `SLOWEST` times that. Reads and writes are as fast as ever.
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
