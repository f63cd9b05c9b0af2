"""The `ottla` command in its own process, as a user starts it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]


def environment(bootstrap: str | None = None) -> dict[str, str]:
    values = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    values.pop("OTTLA_BOOTSTRAP_SERVER", None)
    if bootstrap:
        values["OTTLA_BOOTSTRAP_SERVER"] = bootstrap
    return values


def start_ottla(
    *arguments: str | Path, bootstrap: str | None = None, **options: Any
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "ottla", *map(str, arguments)],
        env=environment(bootstrap),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )
