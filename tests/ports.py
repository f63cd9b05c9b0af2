"""Ports of 127.0.0.1 for servers that tests start in other processes."""

import os
import random
import socket
import weakref
from contextlib import suppress

HOST = "127.0.0.1"


class ReservedPort:
    """While it exists nobody else gets this port, but a server can bind it by number.

    The socket that holds it is bound but not listening, and both sides set SO_REUSEADDR. A port
    that was merely free a moment ago may belong to another test when the server starts.
    """

    def __init__(self, number: int = 0) -> None:
        """Raises OSError if the number is taken; 0 means any."""
        with socket.socket() as held:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind((HOST, number))
            self.number: int = held.getsockname()[1]
            weakref.finalize(self, os.close, held.detach())

    def __str__(self) -> str:
        return str(self.number)


def reserve_row(count: int) -> list[ReservedPort]:
    """That many ports in a row, below the system's ephemeral range."""
    while True:
        first = random.randrange(20_000, 32_000)
        with suppress(OSError):
            return [ReservedPort(number) for number in range(first, first + count)]
