"""`ottla migrate`: move in from a running Kafka cluster, with the same offsets.

All that has to be remembered is in the target cluster: a topic that is open for imports is being
copied, its log ends where the copy goes on, and a closed one is done. So the command can be ended
and started again at any time.
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ottla.cli.assignments import parse_assignments
from ottla.cli.backups.backup import Excluded, Threads, Topics
from ottla.cli.backups.cluster_state import read_state
from ottla.cli.backups.manifest import TopicBackup
from ottla.cli.backups.parallel import Progress, executor_of, for_each, wire_errors
from ottla.cli.backups.partition_copy import Clusters, copy_partition
from ottla.cli.backups.state_changes import apply_groups, apply_state, close_import
from ottla.cli.backups.topics import (
    add_partitions,
    create_missing,
    read_topics,
    topic_partitions_of,
)
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.output import format_size, print_json, print_line, print_rows
from ottla.cli.parameters import AsJson, Flag
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.offsets import LATEST, Isolation, list_offsets

QUIET_ROUNDS: Final = 3  # So often nothing new is found before a cut-over.


class Round(NamedTuple):
    copied_bytes: int
    copied_offsets: int
    ends: dict[TopicPartition, int]  # Of the source, with what is not decided yet.
    lag: dict[TopicPartition, int]  # What the target lacks of that.


def migrate(
    *,
    from_: str,
    from_config: Path | None = None,
    topic: Topics = None,
    exclude: Excluded = None,
    follow: Flag = False,
    cut_over: Flag = False,
    interval: float = 1.0,
    wait: float = 60.0,
    set_: list[str] | None = None,
    replication_factor: int | None = None,
    threads: Threads = 4,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Copy topics from another cluster with the same offsets, and their configs, groups and ACLs.

    Args:
        from_: A broker of the cluster to move from, as HOST:PORT.
        from_config: File with the client settings for that cluster.
        follow: Keep copying new records until ctrl-c or the cut-over.
        cut_over: Once nothing is written to the other cluster, open the topics here to producers.
        interval: Seconds between checks for new records.
        wait: Seconds that a cut-over waits for producers to stop; with --follow, forever.
        set_: KEY=VALUE, overrides a config of the copied topics; may be repeated.
        replication_factor: Replication factor of the copied topics; their own by default.
    """
    source = Connection(from_, connection.connect_timeout, from_config)
    source.reach("--from")
    connection.reach()
    extra = parse_assignments("--set", set_ or [])
    move = _Move(Clusters(source, connection), topic or [], exclude or [], executor_of(threads))
    with closing(move), wire_errors():
        move.begin(replication_factor, extra)
        _run(move, follow=follow, cut_over=cut_over, interval=interval, wait=wait, as_json=as_json)


def _run(
    move: "_Move", *, follow: bool, cut_over: bool, interval: float, wait: float, as_json: bool
) -> None:
    deadline = time.monotonic() + wait
    quiet_count = 0
    before: Round | None = None
    while True:
        done = move.copy_round()
        busy = _busy_topics(done, before) if before else []
        quiet_count = quiet_count + 1 if before and not busy else 0
        before = done
        if cut_over and (quiet_count >= QUIET_ROUNDS or not done.ends):
            move.cut_over(done)
            _report(move, done, as_json=as_json, cut_over=True)
            return
        if not follow and not cut_over:
            _report(move, done, as_json=as_json, cut_over=False)
            return
        if cut_over and not follow and busy and time.monotonic() > deadline:
            raise CommandError(
                f"records still come into {', '.join(busy)}; stop the producers, then run this"
                " again with --cut-over"
            )
        if follow:
            _tell(done, as_json=as_json)
        time.sleep(interval)


def _busy_topics(done: Round, before: Round) -> list[str]:
    return sorted(
        {
            partition.topic
            for partition, end in done.ends.items()
            if done.lag[partition] or end != before.ends.get(partition)
        }
    )


@dataclass(slots=True)
class _Move:
    _clusters: Clusters
    _patterns: list[str]
    _excluded: list[str]
    _executor: ThreadPoolExecutor
    _topics: list[TopicBackup] = field(default_factory=list)
    done: list[str] = field(default_factory=list)  # Topics that were cut over before.
    notes: list[str] = field(default_factory=list)

    def close(self) -> None:
        self._executor.shutdown(cancel_futures=True)
        self._clusters.close()

    def begin(self, replication_factor: int | None, extra: dict[str, str]) -> None:
        """Make the topics that are not there."""
        with self._clusters.both() as (source, target):
            topics = read_topics(source, self._patterns, self._excluded)
            refusal = "exists here already; --exclude it"
            done, self.notes = create_missing(
                target, topics, replication_factor, extra, refusal=refusal
            )
            self.done = sorted(done)
            self._topics = [each for each in topics if each.name not in done]

    def copy_round(self) -> Round:
        """What the source has now, up to its last stable offsets."""
        with self._clusters.both() as (source, target):
            self._add_partitions(source, target)
            topic_partitions = topic_partitions_of(self._topics)
            stable = _ends(source, topic_partitions, Isolation.READ_COMMITTED)
            ends = _ends(source, topic_partitions, Isolation.READ_UNCOMMITTED)
            have = _ends(target, topic_partitions, Isolation.READ_UNCOMMITTED)
        missing = [
            topic_partition
            for topic_partition in topic_partitions
            if have[topic_partition] < stable[topic_partition]
        ]
        total = sum(stable[topic_partition] - have[topic_partition] for topic_partition in missing)
        with Progress(total) as progress:
            copied = for_each(
                missing,
                lambda topic_partition: copy_partition(
                    self._clusters, topic_partition, stable[topic_partition], progress.on_copied
                ),
                self._executor,
            )
        have |= copied
        with self._clusters.both() as (source, target):
            names = {each.name for each in self._topics}
            state = read_state(source, names, only_groups=True)
            apply_groups(target, state, have)  # What fails now is tried again at the end.
        lag = {
            topic_partition: max(ends[topic_partition] - have[topic_partition], 0)
            for topic_partition in topic_partitions
        }
        return Round(progress.bytes, progress.offsets, ends, lag)

    def cut_over(self, done: Round) -> None:
        """Everything is here: set the rest, and let producers write."""
        with self._clusters.both() as (source, target):
            state = read_state(source, {each.name for each in self._topics})
            self.notes += apply_state(target, state, done.ends)
            for each in self._topics:
                close_import(target, each.name)
            late = _ends(source, list(done.ends), Isolation.READ_UNCOMMITTED)
        self.notes += [
            f"{topic_partition}: {late[topic_partition] - end} records were written there after"
            " the cut-over"
            for topic_partition, end in done.ends.items()
            if late[topic_partition] != end
        ]

    def _add_partitions(self, source: Cluster, target: Cluster) -> None:
        """As many as the source has now."""
        found = {each.name: each for each in read_topics(source, self._patterns, self._excluded)}
        here = target.topics([each.name for each in self._topics])
        for topic in self._topics:
            now = found.get(topic.name)
            if now is None or now.id != topic.id:
                raise CommandError(f"topic {topic.name} was deleted in the other cluster")
            topic.end_offsets = now.end_offsets
            if len(topic.end_offsets) > len(here[topic.name].leaders):
                add_partitions(target, topic.name, len(topic.end_offsets))


def _ends(
    cluster: Cluster, topic_partitions: list[TopicPartition], isolation: Isolation
) -> dict[TopicPartition, int]:
    found = list_offsets(cluster, dict.fromkeys(topic_partitions, LATEST), isolation)
    return {topic_partition: offset or 0 for topic_partition, offset in found.items()}


def _tell(done: Round, *, as_json: bool) -> None:
    lag = sum(done.lag.values())
    if as_json:
        print_line(json.dumps({"copied": done.copied_offsets, "lag": lag}))
    elif done.copied_offsets or lag:
        size = format_size(done.copied_bytes)
        print_line(f"copied {done.copied_offsets} offsets, {size}; {lag} to go")


def _report(move: _Move, done: Round, *, as_json: bool, cut_over: bool) -> None:
    rows = [
        {
            **topic_partition._asdict(),
            "end_offset": done.ends[topic_partition],
            "lag": done.lag[topic_partition],
        }
        for topic_partition in sorted(done.ends)
    ]
    if as_json:
        print_json(
            {"cut_over": cut_over, "partitions": rows, "done": move.done, "notes": move.notes}
        )
        return
    print_rows(("topic", "partition", "end_offset", "lag"), rows)
    for note in move.notes:
        print_line(f"not as it was: {note}")
    if cut_over:
        print_line("the topics are open for producers here")
    else:
        print_line("producers are refused here; stop them there and run this again with --cut-over")
