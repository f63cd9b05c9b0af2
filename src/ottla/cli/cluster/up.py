"""`ottla cluster up`: a cluster on this machine, to try things out."""

import asyncio
import sys
from pathlib import Path

from ottla.cli.assignments import parse_assignments
from ottla.cli.child_nodes import PATIENT, ChildNode, ChildNodes
from ottla.cli.errors import UsageError

HOST = "localhost"
NODES_MAX = 99

_READY = """
The cluster is ready: {bootstrap}
{nodes}
In another terminal, try:

  export OTTLA_BOOTSTRAP_SERVER={bootstrap}
  ottla node list
  ottla topics create greetings --partitions 3 --replication-factor {replicas}
  ottla produce greetings "hello, world"
  kill -9 {pid}
  ottla consume greetings --from-beginning --no-follow

Stop it with Ctrl-C. The data stays in {data}.
"""


def up(
    *,
    nodes: int = 3,
    port: int = 9092,
    data: Path = Path("ottla-cluster"),
    set_: list[str] | None = None,
) -> int:
    """Run a cluster on this machine, one process per node, until ctrl-c.

    Args:
        nodes: Number of nodes.
        port: Port of the first node; the others use the next ones.
        data: Data directory; each node has its own subdirectory.
        set_: One configuration key as KEY=VALUE for every node; may be repeated.
    """
    if not 1 <= nodes <= NODES_MAX:
        raise UsageError(f"--nodes {nodes} is not from 1 to {NODES_MAX}")
    if not 1 <= port <= (1 << 16) - nodes:
        raise UsageError(f"--port {port} leaves no room for {nodes} nodes")
    parse_assignments("--set", set_ or [])
    children = [
        ChildNode(number, HOST, port + number - 1, _arguments(number, port, data, set_ or []))
        for number in range(1, nodes + 1)
    ]
    return asyncio.run(_run(ChildNodes(children, restarts=False), children, data))


def _arguments(number: int, port: int, data: Path, overrides: list[str]) -> tuple[str, ...]:
    arguments = ["--id", str(number), "--port", str(port + number - 1)]
    arguments += ["--data", str(data / f"node-{number}")]
    if number > 1:
        arguments += ["--join", f"{HOST}:{port}", *PATIENT]
    for override in overrides:
        arguments += ["--set", override]
    return tuple(arguments)


async def _run(nodes: ChildNodes, children: list[ChildNode], data: Path) -> int:
    running = asyncio.ensure_future(nodes.run())
    ready = asyncio.ensure_future(nodes.wait_until_ready())
    await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
    if ready.done():
        if ready.result():
            _greet(nodes, children, data)
        else:
            nodes.stop()  # Less than was asked for is no cluster to try things out with.
    code = await running
    ready.cancel()
    return code


def _greet(nodes: ChildNodes, children: list[ChildNode], data: Path) -> None:
    pids = nodes.pids
    lines = [
        f"  node {child.node_id}  {child.host}:{child.port}  process {pids[child.node_id]}\n"
        for child in children
        if child.node_id in pids
    ]
    sys.stdout.write(
        _READY.format(
            bootstrap=",".join(f"{child.host}:{child.port}" for child in children),
            nodes="".join(lines),
            replicas=min(3, len(children)),
            pid=pids.get(children[-1].node_id, "PROCESS"),
            data=data,
        )
    )
    sys.stdout.flush()
