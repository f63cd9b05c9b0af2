"""Nodes as child processes of one command, which may exit at any moment."""

import asyncio
from pathlib import Path

import pytest
from tests.ports import HOST, ReservedPort

from ottla.cli import child_nodes
from ottla.cli.child_nodes import ChildNode, ChildNodes
from ottla.cli.errors import ExitCode

pytestmark = pytest.mark.process


def make_node(port: ReservedPort, data: Path) -> ChildNode:
    return ChildNode(1, HOST, port.number, ("--port", str(port), "--data", str(data)))


def test_a_node_that_is_about_to_begin_is_stopped_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_nodes, "STOP_TIMEOUT_S", 3600.0)  # Nothing has to be killed.
    port = ReservedPort()

    async def main() -> None:
        nodes = ChildNodes([make_node(port, tmp_path)], restarts=True)
        running = asyncio.ensure_future(nodes.run())
        await asyncio.sleep(0)
        assert not nodes.pids
        nodes.stop()
        assert await running == ExitCode.OK
        assert not nodes.pids

    asyncio.run(main())
