"""Ports of this machine that stay with a node while it is down: for tests and demonstrations."""

import socket

HOST = "127.0.0.1"


class HeldPort:
    """Until it is released nobody is given this port, but a server that asks for it gets it.

    The socket that holds it is bound and does not listen, and both sides set SO_REUSEADDR.
    """

    def __init__(self, number: int = 0) -> None:
        """OSError when the number is taken; 0 is any."""
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
