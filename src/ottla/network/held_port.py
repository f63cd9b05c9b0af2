"""Ports of this machine that stay with a node while it is down: for tests and demonstrations."""

import socket

HOST = "127.0.0.1"


class HeldPort:
    """Until released, the system gives this port to nobody, but a server that names it gets it.

    The holding socket is bound but does not listen, and both sides set SO_REUSEADDR.
    """

    def __init__(self, number: int = 0) -> None:
        """OSError if the port is taken; 0 takes any."""
        self._socket = socket.socket()
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((HOST, number))
        except OSError:
            self._socket.close()
            raise
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        self._socket.close()
