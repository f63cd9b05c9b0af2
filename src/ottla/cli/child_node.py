"""The `ottla` command as one of several processes of another: `child_node PARENT ARGUMENT...`.

It does not outlive the process PARENT, on Linux. It sees to that itself: between fork and exec a
process may hardly do anything when its parent has threads.
"""

import ctypes
import os
import signal
import sys
from typing import Final

from ottla.cli.errors import ExitCode
from ottla.cli.main import main

_PR_SET_PDEATHSIG: Final = 1


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # It has ended before.
            sys.exit(ExitCode.FAILED)


if __name__ == "__main__":
    _end_with(int(sys.argv.pop(1)))
    main()
