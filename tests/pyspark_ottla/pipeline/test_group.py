import sys
import threading
from pathlib import Path

from pyspark_ottla.pipeline.group import Group, Member

FAILS_TWICE = """\
import sys
from pathlib import Path
tries = Path(sys.argv[1])
count = len(tries.read_text()) if tries.exists() else 0
tries.write_text("x" * (count + 1))
print("try", count + 1)
sys.exit(3 if count < 2 else 0)
"""
WAITS = """\
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


def program(name: str, text: str, *arguments: str) -> Member:
    return Member(name, [sys.executable, "-c", text, *arguments])


def test_what_fails_starts_again(tmp_path: Path) -> None:
    lines: list[str] = []
    member = program("a", FAILS_TWICE, str(tmp_path / "tries"))
    group = Group([member], failures_max=3, say=lines.append, pause_s=0.001)
    group.run()
    assert group.given_up == []
    assert [line for line in lines if "try" in line] == ["a: try 1", "a: try 2", "a: try 3"]
    assert lines[1].startswith("a: failed with 3, starts again in ")


def test_what_goes_on_failing_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    lines: list[str] = []
    members = [
        program("bad", "import sys; sys.exit(7)"),
        program("good", FAILS_TWICE, str(tmp_path / "tries")),
    ]
    group = Group(members, failures_max=3, say=lines.append, pause_s=0.001)
    group.run()
    assert group.given_up == ["bad"]
    assert "bad: given up after 3 failures in a row" in lines
    assert "good: try 3" in lines


def test_a_stop_ends_all() -> None:
    ready = threading.Event()
    group = Group(
        [program("a", WAITS)], failures_max=3, say=lambda line: ready.set() if line else None
    )
    running = threading.Thread(target=group.run)
    running.start()
    ready.wait()
    group.stop()
    running.join()
    assert group.given_up == []
