"""A node's readiness, for whatever starts and watches it."""

import asyncio
import dataclasses
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.node.test_metrics import started

from ottla.node.config import load_config
from ottla.node.environment import Environment
from ottla.node.node import Node
from ottla.node.readiness import Phase
from ottla.node.serve_settings import ServeSettings
from ottla.node.service_manager import notify, tell_when_ready
from ottla.storage.faulty_filesystem import FaultyFilesystem

T = TypeVar("T")


def answer(url: str) -> tuple[int, str]:
    try:
        with urlopen(url, timeout=60) as response:
            return response.status, response.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def in_thread(call: Callable[..., T], *arguments: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, call, *arguments)


def test_a_node_that_serves_is_alive_and_ready() -> None:
    async def run() -> None:
        async with started() as (_, url):
            base = url.removesuffix("/metrics")
            assert await in_thread(answer, f"{base}/livez") == (200, "ok\n")
            assert await in_thread(answer, f"{base}/readyz") == (200, "ok\n")
            status, text = await in_thread(answer, f"{base}/other")
            assert (status, "/readyz" in text) == (404, True)

    asyncio.run(run())


def make_node(**overrides: str) -> Node:
    environment = dataclasses.replace(Environment.real(), filesystem=FaultyFilesystem(0))
    serve = ServeSettings(host="127.0.0.1", port=0, overrides=overrides)
    return Node(load_config(serve, {}), environment)


def test_what_a_node_waits_for_is_named() -> None:
    async def run() -> None:
        node = make_node()
        readiness = node.readiness
        assert readiness.why_not_ready() == Phase.STARTING.value
        await node.start()
        assert await in_thread(readiness.why_not_ready) is None

        broker = node.image.brokers.pop(1)
        assert await in_thread(readiness.why_not_ready) == "the node is not registered"
        node.image.brokers[1] = dataclasses.replace(broker, fenced=True)
        assert await in_thread(readiness.why_not_ready) == "the node is fenced"
        node.image.brokers[1] = broker

        in_touch, readiness.is_in_touch = readiness.is_in_touch, bool
        assert "heartbeats" in str(await in_thread(readiness.why_not_ready))
        readiness.is_in_touch = in_touch
        await node.stop()
        assert readiness.why_not_ready() == Phase.STOPPING.value

    asyncio.run(run())


def test_a_node_that_waits_for_others_is_alive_and_not_ready() -> None:
    async def run() -> None:
        with socket.socket() as absent:
            absent.bind(("127.0.0.1", 0))  # Nobody listens there.
            address = f"127.0.0.1:{absent.getsockname()[1]}"
            node = make_node(
                **{"metrics.port": "0", "controller.quorum.bootstrap.servers": address}
            )
            starting = asyncio.ensure_future(node.start())
            await asyncio.sleep(0)  # It starts with the port.
            base = f"http://localhost:{node.metrics_port}"
            assert await in_thread(answer, f"{base}/livez") == (200, "ok\n")
            for path in ("readyz", "metrics"):
                assert await in_thread(answer, f"{base}/{path}") == (503, "the node is starting\n")
            starting.cancel()
            await asyncio.wait({starting})

    asyncio.run(run())


def test_systemd_hears_when_the_node_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        node = make_node()
        await node.start()
        await tell_when_ready(node.readiness)
        await node.stop()

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        asyncio.run(run())
        assert b"READY=1" in manager.recv(1000)
        notify("STOPPING=1")
        assert manager.recv(1000) == b"STOPPING=1"
    notify("STOPPING=1")  # Nobody listens anymore, which must not cause a failure.
