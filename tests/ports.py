"""Ports of 127.0.0.1 for servers that tests start in other processes."""

import os
import random
import socket
import weakref
from contextlib import suppress

HOST = "127.0.0.1"


class ReservedPort:
    """As long as it lives nobody is given this port; a server that asks for its number gets it.

    The socket that holds it is bound and does not listen, and both sides set SO_REUSEADDR. A port
    that is only found to be free can be another test's by the time that the server starts.
    """

    def __init__(self, number: int = 0) -> None:
        """OSError when the number is taken; 0 is any."""
        with socket.socket() as held:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind((HOST, number))
            self.number: int = held.getsockname()[1]
            weakref.finalize(self, os.close, held.detach())

    def __str__(self) -> str:
        return str(self.number)


def reserve_row(count: int) -> list[ReservedPort]:
    """So many in a row, below those that the system gives to who asks for any."""
    while True:
        first = random.randrange(20_000, 32_000)
        with suppress(OSError):
            return [ReservedPort(number) for number in range(first, first + count)]
