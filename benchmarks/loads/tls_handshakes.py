"""Connects over TLS 1.3 repeatedly, and sends ApiVersions once on each connection.

The response carries the session ticket with which the next connection may be resumed.
"""

import ssl
import threading
import time
from dataclasses import dataclass

import cyclopts

from benchmarks.loads import frames
from benchmarks.loads.outcome import report
from benchmarks.loads.tls import client_context

API_VERSIONS = 18
_REQUEST = frames.frame(API_VERSIONS, 3, b"\x0abenchmark" + b"\x021" + b"\x00")


@dataclass
class Counts:
    handshakes: int = 0
    resumed: int = 0


def main(
    *, address: str, authority: str, resume: int = 0, seconds: float = 2.0, threads: int = 2
) -> None:
    """Handshakes, one at a time in each of `threads`; with `resume`, asking for resumption."""
    counts = [Counts() for _ in range(threads)]
    start = time.perf_counter()
    workers = [
        threading.Thread(
            target=_work, args=(address, authority, bool(resume), start + seconds, count)
        )
        for count in counts
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    elapsed = time.perf_counter() - start
    handshakes = sum(count.handshakes for count in counts)
    report(
        handshakes_per_second=handshakes / elapsed,
        handshakes=handshakes,
        resumed=sum(count.resumed for count in counts),
        bytes=handshakes,  # So that the broker's cost is reported per handshake.
        seconds=elapsed,
    )


def _work(address: str, authority: str, resume: bool, end: float, counts: Counts) -> None:
    context = client_context(authority)
    host = address.rpartition(":")[0]
    session: ssl.SSLSession | None = None
    while time.perf_counter() < end:
        with context.wrap_socket(
            frames.connect(address), server_hostname=host, session=session
        ) as connection:
            connection.sendall(_REQUEST)
            frames.receive_response(connection)
            counts.handshakes += 1
            counts.resumed += bool(connection.session_reused)
            session = connection.session if resume else None


if __name__ == "__main__":
    cyclopts.run(main)
