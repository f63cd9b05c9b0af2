"""The Python that Spark's workers run on.

Spark puts an archive of PySpark ahead of everything installed, and Python recompiles imports from
an archive in every process. Starting from the installed PySpark takes a third of the time. A
process that Spark waits for connects before that, with `early_connection`.

Prints it for shells that start a Spark server:
`export PYSPARK_PYTHON=$(python -m pyspark_ottla.python)`.
"""

import hashlib
import os
import shlex
import sys
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

from pyspark_ottla.workarounds import early_connection

_WRAPPER = """\
#!/bin/sh
kept=
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
        */pyspark.zip | */py4j-*-src.zip) ;;
        *) kept=$kept:$entry ;;
    esac
done
export PYTHONPATH=${{kept#:}}
if [ "$1" = -m ] && [ -n "${address}" ] && [ -f {early_connection} ]; then
    shift
    exec {python} -P {early_connection} "$@"
fi
exec {python} "$@"
"""


def use_installed_pyspark(environment: MutableMapping[str, str] = os.environ) -> None:
    """For the workers of a local Spark, unless their Python was already chosen."""
    environment.setdefault("PYSPARK_PYTHON", str(wrap_python()))


def wrap_python() -> Path:
    """A program that runs this Python without the archive."""
    text = _WRAPPER.format(
        python=shlex.quote(sys.executable),
        early_connection=shlex.quote(early_connection.__file__),
        address=early_connection.ADDRESS,
    )
    name = f"ottla-python-{os.getuid()}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    path = Path(tempfile.gettempdir(), name)
    if not _is_own(path, text):
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            file.write(text)
        made = Path(file.name)
        made.chmod(0o755)
        made.replace(path)
    return path


def _is_own(path: Path, text: str) -> bool:
    """Others may write to the directory, but cannot replace what this user owns."""
    return (
        path.is_file()
        and not path.is_symlink()
        and path.stat().st_uid == os.getuid()
        and path.read_text() == text
    )


def main() -> None:
    print(wrap_python())  # noqa: T201


if __name__ == "__main__":
    main()
