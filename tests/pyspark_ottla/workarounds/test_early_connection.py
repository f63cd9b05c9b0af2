import os
import socket
import subprocess
from pathlib import Path

import pytest

from pyspark_ottla.python import wrap_python
from pyspark_ottla.workarounds import early_connection
from pyspark_ottla.workarounds.early_connection import ADDRESS

SLOW = "input()"  # As if importing took long.
UTIL = """
def local_connect_and_auth(where, secret):
    raise RuntimeError(f"a connection to {where}")
"""
RUNNER = """
import os
import sys
from pyspark.util import local_connect_and_auth

where = os.environ["PYTHON_WORKER_FACTORY_SOCK_PATH"]
file, connection = local_connect_and_auth(where, None)
file.write(f"{__name__} {sys.argv[1:]} {connection.gettimeout()}".encode())
file.close()
try:
    local_connect_and_auth(where, None)
except RuntimeError as error:
    print(error)
"""


@pytest.fixture(autouse=True)
def _directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses are relative to it: an absolute path may be too long."""
    monkeypatch.chdir(tmp_path)


def start(directory: Path, address: str) -> "subprocess.Popen[bytes]":
    """A process started like Spark's, with a PySpark that waits for a line of input."""
    (directory / "pyspark").mkdir()
    for name, text in (("__init__", SLOW), ("util", UTIL), ("runner", RUNNER)):
        (directory / "pyspark" / f"{name}.py").write_text(text)
    return subprocess.Popen(
        [wrap_python(), "-m", "pyspark.runner", "a b"],
        env=os.environ
        | {
            "PYTHONPATH": str(directory),
            "SPARK_AUTH_SOCKET_TIMEOUT": "7",
            ADDRESS: address,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_it_connects_before_it_imports_pyspark_which_then_has_the_connection(
    tmp_path: Path,
) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        server.listen()
        with start(tmp_path, "socket") as process:
            connection, _ = server.accept()
            with connection:
                output, errors = process.communicate(b"\n")
                sent = connection.makefile("rb").read()
    assert process.returncode == 0, errors.decode()
    assert sent == b"__main__ ['a b'] 7.0"
    assert output == b"a connection to socket\n"


@pytest.mark.parametrize("file", [early_connection.__file__, "/nowhere/early_connection.py"])
def test_where_nobody_listens_or_it_is_not_a_file_pyspark_connects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    monkeypatch.setattr(early_connection, "__file__", file)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with start(tmp_path, "nothing") as process:
        _, errors = process.communicate(b"\n")
    assert process.returncode == 1
    assert "RuntimeError: a connection to nothing" in errors.decode()
