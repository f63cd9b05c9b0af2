"""Lets the client of a Spark Connect server in this process find the server at a free port.

The client goes to the configured port, which is 0 for a server that picks a free one.

For     Spark 4.1 to 4.3.
Until   the client asks the server that it has started.
"""

from typing import Any

from pyspark.sql.connect.client import DefaultChannelBuilder

_SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService$"


def use_picked_port() -> None:
    """For the servers of this process from now on."""
    DefaultChannelBuilder.default_port = staticmethod(_port_of_server)  # type: ignore[method-assign]


def _port_of_server() -> int:
    from pyspark.sql.session import SparkSession

    session: Any = SparkSession._instantiatedSession
    return int(getattr(getattr(session._jvm, _SERVICE), "MODULE$").localPort())
