"""`ottla top`: the cluster, its busiest topics and its slowest groups, live."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import confluent_kafka
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, OffsetSpec

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, TIMEOUT_S, Connection
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.groups.lag import lag_rows
from ottla.cli.nodes.list import node_rows
from ottla.cli.output import format_cell
from ottla.cli.parameters import Flag
from ottla.protocol.topics import TopicPartition

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

_NODES: Final = ("node", "address", "state", "quorum", "leaders", "replicas", "out_of_sync")
_TOPICS: Final = ("topic", "partitions", "records/s", "records", "unhealthy")
_GROUPS: Final = ("group", "state", "members", "lag")
_FIXED_LINES: Final = 12  # Titles, rules and the line at the top.
_ROWS_MIN: Final = 3
_NAME_MAX: Final = 32


class Sample(NamedTuple):
    at_s: float
    nodes: list[dict[str, Any]]
    ends: dict[TopicPartition, int]  # Of partitions that have a leader.
    unhealthy: Counter[str]  # Partitions by topic: without a leader, or with replicas behind.
    partitions: Counter[str]
    groups: list[dict[str, Any]]


def top(
    *,
    interval: float = 2.0,
    once: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Show nodes, the busiest topics and the groups that are furthest behind, until ctrl-c.

    Args:
        interval: Seconds between updates.
        once: Show one interval and exit.
    """
    if interval <= 0:
        raise UsageError(f"--interval {interval:g} is not more than 0")
    from rich.console import Console
    from rich.live import Live

    console = Console()
    views = _views(connection, interval)
    if once:
        console.print(render(*next(views)))
        return
    with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
        for before, now in views:
            rows = max(_ROWS_MIN, (console.height - _FIXED_LINES - len(now.nodes)) // 2)
            live.update(render(before, now, rows), refresh=True)


def _views(connection: Connection, interval: float) -> Iterator[tuple[Sample, Sample]]:
    """Two looks each; a cluster that does not answer for a moment is asked again."""
    admin = connection.admin()
    before = _look(connection, admin)
    failures = 0
    while True:
        time.sleep(interval)
        try:
            now = _look(connection, admin)
        except CommandError:
            failures += 1
            if failures > 5:
                raise
            continue
        failures = 0
        yield before, now
        before = now


def _look(connection: Connection, admin: AdminClient) -> Sample:
    with bootstrap_broker(connection) as broker:
        nodes, found = node_rows(broker), broker.partitions()
    partitions = Counter(topic_partition.topic for topic_partition in found)
    unhealthy = Counter(
        topic_partition.topic
        for topic_partition, partition in found.items()
        if partition.leader_id < 0 or set(partition.isr_nodes) != set(partition.replica_nodes)
    )
    led = [
        topic_partition for topic_partition, partition in found.items() if partition.leader_id >= 0
    ]
    at_s = time.monotonic()
    ends = _end_offsets(admin, led)
    return Sample(at_s, nodes, ends, unhealthy, partitions, lag_rows(connection))


def _end_offsets(
    admin: AdminClient, topic_partitions: list[TopicPartition]
) -> dict[TopicPartition, int]:
    """Of those whose leader answers."""
    wanted = {
        confluent_kafka.TopicPartition(*topic_partition): OffsetSpec.latest()
        for topic_partition in topic_partitions
    }
    if not wanted:
        return {}
    ends: dict[TopicPartition, int] = {}
    for asked, future in admin.list_offsets(wanted, request_timeout=TIMEOUT_S).items():
        try:
            ends[TopicPartition(asked.topic, asked.partition)] = future.result().offset
        except KafkaException:
            continue
    return ends


def render(before: Sample, now: Sample, rows: int = 15) -> "Group":
    """At most so many topics, and so many groups."""
    from rich.console import Group

    topics = topic_rows(before, now)
    rate = sum(row["records/s"] for row in topics)
    down = sum(row["state"] == "fenced" for row in now.nodes)
    unhealthy = sum(now.unhealthy.values())
    health = "healthy" if not down and not unhealthy else "unhealthy: see ottla doctor"
    summary = (
        f"{len(now.nodes) - down} of {len(now.nodes)} nodes, {len(now.partitions)} topics,"
        f" {sum(now.partitions.values())} partitions, {rate:,.0f} records/s, {health}"
    )
    parts: list[RenderableType] = [summary, "", _table(_NODES, now.nodes), ""]
    parts += [_table(_TOPICS, topics[:rows]), _more(topics, rows)]
    if now.groups:
        parts += [_table(_GROUPS, now.groups[:rows]), _more(now.groups, rows)]
    return Group(*parts)


def topic_rows(before: Sample, now: Sample) -> list[dict[str, Any]]:
    """The busiest first, then the largest."""
    elapsed_s = max(now.at_s - before.at_s, 1e-3)
    written: Counter[str] = Counter()
    records: Counter[str] = Counter()
    for topic_partition, end in now.ends.items():
        records[topic_partition.topic] += end
        written[topic_partition.topic] += max(0, end - before.ends.get(topic_partition, end))
    rows = [
        {
            "topic": topic,
            "partitions": count,
            "records/s": round(written[topic] / elapsed_s),
            "records": records[topic],
            "unhealthy": now.unhealthy[topic] or None,
        }
        for topic, count in now.partitions.items()
    ]
    return sorted(rows, key=lambda row: (-row["records/s"], -row["records"], row["topic"]))


def _more(rows: list[dict[str, Any]], shown: int) -> str:
    return f"and {len(rows) - shown} more" if len(rows) > shown else ""


def _table(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        is_number = all(isinstance(row.get(column), int | None) for row in rows)
        table.add_column(
            column.replace("_", " ").upper(),
            justify="right" if is_number and rows else "left",
            overflow="ellipsis",
            no_wrap=True,
            max_width=_NAME_MAX,
        )
    for row in rows:
        cells = [row.get(column) for column in columns]
        style = "red" if row.get("state") == "fenced" or row.get("unhealthy") else ""
        table.add_row(*(Text(_cell(each)) for each in cells), style=style)
    return table


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else format_cell(value)
