"""Joining nodes that do not answer."""

import asyncio
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from tests.ports import HOST, ReservedPort

from ottla.network.peers import Peers
from ottla.node.joining import CannotJoin, Joining
from ottla.protocol.addresses import Address
from ottla.storage.faulty_filesystem import FaultyFilesystem

TIMEOUT_S = 1.5


def refusal(addresses: list[Address]) -> str:
    """The outcome for a node with a new directory that should join them."""

    async def join() -> str:
        loop = asyncio.get_running_loop()
        disk = FaultyFilesystem(seed=1)
        disk.make_directory("/data")
        peers = Peers(loop, "node-2", Random(1).random)
        with ThreadPoolExecutor(1) as executor:
            joining = Joining(
                peers=peers,
                addresses=addresses,
                node_id=2,
                filesystem=disk,
                directories=["/data"],
                loop=loop,
                executor=executor,
                timeout_s=TIMEOUT_S,
                patience_s=0.0,
            )
            with pytest.raises(CannotJoin) as refused:
                await joining.cluster_id()
        peers.close()
        return str(refused.value)

    return asyncio.run(join())


def test_silent_nodes_share_the_time_for_an_answer() -> None:
    """Each accepts connections and never answers, like a hanging node."""
    with socket.create_server((HOST, 0)) as first, socket.create_server((HOST, 0)) as second:
        ports = [each.getsockname()[1] for each in (first, second)]
        text = refusal([Address(HOST, port) for port in ports])
    assert [int(port) for port in re.findall(r":(\d+) did not", text)] == ports
    waited_ms = [int(each) for each in re.findall(r"did not answer within (\d+) ms", text)]
    assert min(waited_ms) >= 500
    assert sum(waited_ms) <= TIMEOUT_S * 1000


def test_an_address_where_nobody_listens_is_named() -> None:
    text = refusal([Address(HOST, ReservedPort().number)])
    assert "Connect call failed" in text or "Connection refused" in text
    assert text.endswith(
        "give --join the address of a node that runs, or leave it out to begin a cluster"
    )
