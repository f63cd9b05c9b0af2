"""Reports TLS connections that have ended, those included whose handshake failed.

uvicorn does not, and never hears of the latter. A connection's `SSLObject` lives as long as its
buffers, whichever event loop serves it.
"""

import ssl
from collections.abc import Callable


def report_ends(context: ssl.SSLContext, on_end: Callable[[], object]) -> None:
    """Of connections from now on. `on_end` takes no lock: it may be called anywhere."""

    class Reported(ssl.SSLObject):
        def __del__(self) -> None:
            on_end()

    context.sslobject_class = Reported
