"""What a produce costs in instructions: `python -m benchmarks.instructions [--against REVISION]`.

A broker runs under callgrind, which counts only while the event loop reads from a socket: the
request, the append and the answer, and nothing driven by timers. So other work on the machine does
not matter, and two counts of the same code differ by less than 0.1 %. One request at a time, one
record of 100 bytes in each.

`plain` has no authorizer; the others have one, with just the entry that lets the client write, and
with 10,000 more. A revision older than the authorizer is compared with `plain`.
"""

import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import cyclopts
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from benchmarks import processes
from benchmarks.bench import run_load
from benchmarks.peers.ottla import Ottla
from benchmarks.peers.peer import Flush, Server, Unavailable, log_path

CACHE = Path(__file__).parent / ".cache"
TOPIC = "load"
REQUESTS = 2_000
ENTRIES = 10_000
READY_SECONDS_MAX = 600.0
# What uvloop calls when a socket has bytes for a buffered protocol.
ON_READ = "__pyx_f_6uvloop_4loop___uv_stream_buffered_on_read"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class Counted:
    """A broker of `peer`, with an authorizer that has this many entries, or without one."""

    def __init__(self, peer: Ottla, directory: Path, entries: int = 0) -> None:
        self._peer = peer
        self._directory = directory
        self._entries = entries
        self._port = processes.free_port()

    def count(self) -> float:
        """Instructions per request."""
        self._fill()
        out = self._directory / "callgrind.out"
        valgrind = ["valgrind", "--tool=callgrind", f"--toggle-collect={ON_READ}"]
        with self._served([*valgrind, f"--callgrind-out-file={out}"], "User:nobody") as server:
            answered = run_load(
                "raw_produce",
                address=server.address,
                topic=TOPIC,
                in_flight=1,
                warm_seconds=0,
                seconds=READY_SECONDS_MAX,
                count=REQUESTS,
            )
        totals = re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.MULTILINE)
        if totals is None:
            raise RuntimeError(f"callgrind has counted nothing: {out}")
        return int(totals[1]) / answered["requests"]

    def _fill(self) -> None:
        """Creates the topic and the entries, while everyone may do everything."""
        with self._served([], "User:ANONYMOUS") as server:
            admin = AdminClient({"bootstrap.servers": server.address, "log_level": 0})
            admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(60)
            if self._entries:
                for created in admin.create_acls(_entries(self._entries)).values():
                    created.result(60)

    @contextmanager
    def _served(self, runner: Sequence[str], super_user: str) -> Iterator[Server]:
        words = self._peer.command(self._directory / "data", self._port, Flush.OS)
        if self._entries:
            settings = (f"authorizer.class.name={AUTHORIZER}", f"super.users={super_user}")
            words += [word for setting in settings for word in ("--set", setting)]
        process = processes.spawn(
            [*runner, *words],
            log_path(self._directory / "data"),
            environment={"PYTHONHASHSEED": "0"},
        )
        server = Server(self._peer, self._directory / "data", self._port, process)
        try:
            server.wait_until_listening(READY_SECONDS_MAX)
            yield server
        finally:
            server.stop()


def _entries(count: int) -> list[AclBinding]:
    """One entry lets the client write; the rest are for other users and topics, some by prefix.

    One in ten is the client's own.
    """
    kinds = (ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED)
    bindings = [_entry(TOPIC, kinds[0], "User:ANONYMOUS")]
    for number in range(1, count):
        principal = "User:ANONYMOUS" if number % 10 == 0 else f"User:user-{number % 1_000}"
        bindings.append(_entry(f"topic-{number}", kinds[number % 20 == 0], principal))
    return bindings


def _entry(topic: str, kind: ResourcePatternType, principal: str) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        topic,
        kind,
        principal,
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )


def main(
    *, against: Annotated[str | None, cyclopts.Parameter(help="A git revision.")] = None
) -> None:
    """Counts the instructions of a produce request, by callgrind."""
    if shutil.which("valgrind") is None:
        sys.exit("this needs valgrind")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    CACHE.mkdir(exist_ok=True)
    ottla = Ottla(warm_seconds=0)
    cases = [("plain", ottla, 0), ("authorizer", ottla, 1), ("10,000 entries", ottla, ENTRIES)]
    if against:
        cases.append((against, Ottla(warm_seconds=0, revision=against), 0))
    counts: dict[str, float] = {}
    for name, peer, entries in cases:
        try:
            peer.prepare(CACHE)
        except Unavailable as reason:
            sys.exit(str(reason))
        with tempfile.TemporaryDirectory(prefix="ottla-instructions-") as directory:
            counts[name] = Counted(peer, Path(directory), entries).count()
        ratio = counts[name] / counts["plain"]
        print(f"{name}: {counts[name]:,.0f} instructions a request, {ratio:.4f}", flush=True)


if __name__ == "__main__":
    cyclopts.run(main)
