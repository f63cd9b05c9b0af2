import subprocess
import sys
from pathlib import Path

from tests.fork_server import REPOSITORY


def test_an_import_patches_nothing() -> None:
    printed = subprocess.run(
        [sys.executable, Path(__file__).with_name("patched.py")],
        env={"PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed == "True [] 0\n"
