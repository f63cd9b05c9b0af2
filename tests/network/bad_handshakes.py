"""Many handshakes that fail at once, and the memory that they leave in a broker.

python -m tests.network.bad_handshakes --connections 7500 --at-once 250
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.network.locked import stored
from tests.ports import HOST, ReservedPort

GROWTH_KB_MAX = 16_384  # The buffers of 250 connections at once are 64,000.
SETTLE_S = 60.0  # A broker returns memory every ten seconds.
BEGINNING = bytes.fromhex("16030100c8010000c40303")  # Of a ClientHello.


async def _assault(port: int, at_once: int) -> None:
    """All hold half a handshake at the same time, then send garbage."""
    opened = await asyncio.gather(
        *(asyncio.open_connection(HOST, port) for _ in range(at_once)), return_exceptions=True
    )
    connections = [connection for connection in opened if not isinstance(connection, BaseException)]
    assert connections, opened[0]
    for garbage in (BEGINNING, bytes(1_000)):
        for _, writer in connections:
            writer.write(garbage)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
    for reader, writer in connections:
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()


async def _assaults(port: int, connections: int, at_once: int) -> None:
    for _ in range(0, connections, at_once):
        await _assault(port, at_once)


def resident_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise AssertionError(f"process {pid} is gone")


def growth_kb(pid: int, port: int, connections: int, at_once: int) -> int:
    """The memory growth of a server that fails these handshakes, once it has settled."""
    asyncio.run(_assaults(port, 10, 10))  # One-time loading does not count.
    before = resident_kb(pid)
    asyncio.run(_assaults(port, connections, at_once))
    deadline = time.monotonic() + SETTLE_S
    while True:
        grown = resident_kb(pid) - before
        if grown <= GROWTH_KB_MAX or time.monotonic() > deadline:
            return grown
        time.sleep(0.1)


def trial(directory: Path, connections: int, at_once: int) -> int:
    """A broker's growth in KB."""
    tls = stored(directory)
    open_port, tls_port = ReservedPort(), ReservedPort()
    arguments = (
        *("--listener", f"PLAINTEXT://{HOST}:{open_port}"),
        *("--listener", f"SSL://{HOST}:{tls_port}"),
        *("--set", f"ssl.keystore.location={tls.keystore_location}"),
        *("--set", f"ssl.truststore.location={tls.truststore_location}"),
    )
    with BrokerProcess(directory, *arguments, port=open_port) as broker:
        return growth_kb(broker.pid, tls_port.number, connections, at_once)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=7_500)
    parser.add_argument("--at-once", type=int, default=250)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        grown = trial(Path(directory), arguments.connections, arguments.at_once)
    sys.stdout.write(f"memory grew by {grown} KB\n")
    sys.exit(grown > GROWTH_KB_MAX)


if __name__ == "__main__":
    main()
