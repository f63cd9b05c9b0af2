"""Can Spark use the sources from here? `python -m pyspark_ottla.check` says what is missing.

Spark looks for a source in a separate Python worker, started as PYSPARK_PYTHON or as the `python3`
on PATH. In a virtual environment that is not activated, that is another Python, and the source is
"not found". `spark_session` takes care of all this; the check is for sessions built without it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import NamedTuple

from pyspark_ottla.java import JavaNotFound, find_java

_PROBE = """\
import sys, pyspark, pyspark_ottla
print(*sys.version_info[:2], sep=".")
print(pyspark.__version__)
"""
_ANSWER_TIMEOUT_S = 120  # On a very busy machine.
_REMEDY = (
    "build the session with pyspark_ottla.spark_session(), or call pyspark_ottla.prepare() before,"
    " or run the script as it is with: python -m pyspark_ottla SCRIPT"
)


class Finding(NamedTuple):
    is_good: bool
    text: str


def check(environment: Mapping[str, str] = os.environ) -> list[Finding]:
    return [_check_java(dict(environment)), _check_python(environment)]


def _check_java(environment: dict[str, str]) -> Finding:
    try:
        java = find_java(environment)
    except JavaNotFound as error:
        return Finding(False, str(error))
    if environment.get("JAVA_HOME") == str(java.home) or shutil.which(
        "java", path=environment.get("PATH", "")
    ):
        return Finding(True, f"Java {java.version} in {java.home}")
    return Finding(
        False,
        f"Java {java.version} is in {java.home}, where Spark does not look: {_REMEDY},"
        f" or set JAVA_HOME={java.home}",
    )


def _check_python(environment: Mapping[str, str]) -> Finding:
    name = environment.get("PYSPARK_PYTHON") or "python3"
    program = shutil.which(name, path=environment.get("PATH", ""))
    if program is None:
        return Finding(False, f"Spark's workers run {name}, which is not there: {_REMEDY}")
    probe = subprocess.run(
        [program, "-c", _PROBE],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=_ANSWER_TIMEOUT_S,
    )
    if probe.returncode:
        reason = probe.stderr.strip().rpartition("\n")[2]
        return Finding(
            False, f"Spark's workers run {program}, which lacks Ottla ({reason}): {_REMEDY}"
        )
    python, spark = probe.stdout.split()
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if python != own:
        return Finding(
            False, f"Spark's workers run Python {python} ({program}), not {own}: {_REMEDY}"
        )
    return Finding(True, f"Spark {spark} with workers on {program}")


def main() -> None:
    findings = check()
    for finding in findings:
        print("ok   " if finding.is_good else "WRONG", finding.text)  # noqa: T201
    sys.exit(not all(finding.is_good for finding in findings))


if __name__ == "__main__":
    main()
