import subprocess
import sys

from tests.fork_server import REPOSITORY

FROZEN = """
import gc
from pyspark_ottla.workarounds.settled_worker import settle
assert not gc.get_freeze_count()
settle()
first = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
settle()
again = gc.get_freeze_count()
import wave
settle()
print(first > 1000, again == first, gc.get_freeze_count() > first + 1000)
"""


def test_what_a_worker_has_loaded_is_set_aside_when_it_has_loaded_more() -> None:
    command = [sys.executable, "-c", FROZEN]
    environment = {"PYTHONPATH": str(REPOSITORY / "src")}
    printed = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert printed == "True True True\n"
