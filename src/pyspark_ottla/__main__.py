"""Runs a script that builds its own Spark session: `python -m pyspark_ottla script.py ...`.

Spark starts its workers with the `python3` on PATH, which is another Python unless the virtual
environment is active. The script runs unchanged, with this Python for the workers and with a Java.
"""

import os
import sys
from pathlib import Path

from pyspark_ottla.java import JavaNotFound
from pyspark_ottla.session import prepare

_USAGE = "usage: python -m pyspark_ottla SCRIPT [ARGUMENT ...]"


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0].startswith("-"):
        sys.exit(_USAGE)
    if not Path(arguments[0]).is_file():
        sys.exit(f"there is no script {arguments[0]}; {_USAGE}")
    try:
        prepare()
    except JavaNotFound as error:
        sys.exit(str(error))
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
