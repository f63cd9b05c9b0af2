"""How long a coordinator loads its partition: from process start to the first answer.

One partition of __consumer_offsets holds all commits. Each is for another group or partition, so
compaction makes no difference.
"""

import shutil
import time

from kio.schema.errors import ErrorCode
from kio.schema.offset_fetch.v8.request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kio.schema.offset_fetch.v8.response import OffsetFetchResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32

from benchmarks.bench import Bench, run_load, wait_until_ready
from benchmarks.loads import exchange, frames
from benchmarks.loads.fill_offsets import groups_of_one_coordinator
from benchmarks.peers.peer import Flush, Peer, Server, spawn_server
from benchmarks.results import SUBJECT, Better, Requirement, Row

COMMITS = 1_000_000
PARTITIONS = 1_000  # The offset that is committed for each is its own number.
PROBED_PARTITION = 7
TEN_SECONDS = Requirement(value_max=10.0)


def loading(bench: Bench) -> None:
    commits = COMMITS if bench.effort.heavy else COMMITS // 50
    label = f"{commits:,} commits, process start to first answered OffsetFetch"
    requirement = TEN_SECONDS if bench.effort.heavy else Requirement()
    row = Row("loading a coordinator", label, "s", Better.LOWER, requirement)
    for peer in bench.peers:
        if peer.name == SUBJECT:
            bench.results.record(row, peer.name, _load_seconds(bench, peer, commits))
            bench.say(f"loading a coordinator: {label}")


def _load_seconds(bench: Bench, peer: Peer, commits: int) -> float:
    directory = bench.new_directory(peer)
    server = spawn_server(peer, directory, Flush.OS)
    try:
        wait_until_ready(server)
        topic = bench.create_topic(server, Flush.OS, PARTITIONS)
        amount = {"partitions": PARTITIONS, "groups": commits // PARTITIONS}
        run_load("fill_offsets", address=server.address, topic=topic, **amount)
        server.stop()
        start = time.perf_counter()
        server = spawn_server(peer, directory, Flush.OS)
        _wait_for_offset(server, topic)
        return time.perf_counter() - start
    finally:
        server.stop()
        shutil.rmtree(directory)


def _wait_for_offset(server: Server, topic: str) -> None:
    """Returns once the coordinator has answered with the committed offset."""
    server.wait_until_listening()
    partitions = (i32(PROBED_PARTITION),)
    asked = OffsetFetchRequestTopics(name=TopicName(topic), partition_indexes=partitions)
    group = OffsetFetchRequestGroup(
        group_id=GroupId(next(groups_of_one_coordinator())), topics=(asked,)
    )
    request = OffsetFetchRequest(groups=(group,))
    with frames.connect(server.address, exchange.COORDINATOR_SECONDS_MAX) as connection:

        def fetched() -> ErrorCode:
            answer = exchange.ask(connection, request, OffsetFetchResponse).groups[0]
            if answer.error_code:
                return answer.error_code
            committed = answer.topics[0].partitions[0]
            if not committed.error_code and committed.committed_offset != PROBED_PARTITION:
                raise RuntimeError(f"the offset {committed.committed_offset} was not committed")
            return committed.error_code

        exchange.wait_until_ready(fetched)
