"""Connects a Python process to the Spark that started it before importing PySpark.

Spark gives up on a stream's process that has not connected within ten seconds, and importing
PySpark can take longer on a machine that is busy or has not read those files yet. A program, run by
the wrapper of `python` with the module that Spark asked for; that module finds the connection made.

For     every Spark 4 that passes its socket's address in the environment.
Until   Spark waits longer, or its worker connects before it imports.
"""

import os
import socket
import sys
import typing

ADDRESS = "PYTHON_WORKER_FACTORY_SOCK_PATH"  # Set by Spark for processes that it waits for.

_BUFFER_BYTES = "65536"
_TIMEOUT_S = "15"


def main(module: str) -> None:
    address = os.environ[ADDRESS]
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
    except OSError:
        connection.close()  # PySpark reports what is wrong.
    else:
        _hand_over(address, connection)
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as with `python -m`, and quickly.
    import runpy

    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _hand_over(address: str, connection: socket.socket) -> None:
    """To the first caller that asks PySpark for a connection to the address."""
    from pyspark import util

    connect = util.local_connect_and_auth
    made = [connection]

    def connect_or_take(
        conn_info: str | int | None, auth_secret: str | None
    ) -> tuple[typing.Any, ...]:
        if conn_info != address or not made:
            return connect(conn_info, auth_secret)
        taken = made.pop()
        taken.settimeout(int(os.environ.get("SPARK_AUTH_SOCKET_TIMEOUT", _TIMEOUT_S)))
        size = int(os.environ.get("SPARK_BUFFER_SIZE", _BUFFER_BYTES))
        return taken.makefile("rwb", size), taken

    util.local_connect_and_auth = connect_or_take


if __name__ == "__main__":
    del sys.argv[0]
    main(sys.argv[0])
