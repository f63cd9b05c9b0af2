import os
import socket
import time

import pytest
from benchmarks.processes import free_port, processor_seconds

HOST = "127.0.0.1"


def test_a_free_port_is_kept_for_a_server_that_asks_for_it() -> None:
    port = free_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((HOST, port))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port))
    with socket.create_server((HOST, port)), socket.create_connection((HOST, port)):
        pass


def test_processor_time_is_that_of_the_process() -> None:
    before = time.process_time()
    assert before <= processor_seconds(os.getpid()) <= time.process_time()
