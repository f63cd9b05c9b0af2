"""Share groups: the share-partitions that this node leads and consumers have requested."""

from collections.abc import Iterator
from typing import Final

from ottla.coordination.share_counters import ShareCounters
from ottla.coordination.share_partitions import LedSharePartition, SharePartitions
from ottla.node.config import METRICS_GROUPS_MAX
from ottla.node.metrics.family import Family, Section, copied, labelled

SECTION = Section("Share groups")


def _by_partition(name: str, text: str) -> Family:
    labels = ("group", "topic", "partition")
    return SECTION.gauge(f"ottla_share_group_{name}", text, labels, METRICS_GROUPS_MAX.name)


def _by_group(name: str, text: str) -> Family:
    return SECTION.counter(f"ottla_share_group_{name}", text, ("group",), METRICS_GROUPS_MAX.name)


_GAUGES: Final = (
    _by_partition(
        "in_flight_records", "Records that consumers hold and have not acknowledged yet."
    ),
    _by_partition("delayed_records", "Records waiting for their time: delayed or backing off."),
    _by_partition("dead_letters_waiting", "Dead letters that are not written yet."),
    _by_partition("lag_records", "Unfinished records: waiting, in flight or unread."),
)
_DELIVERED = _by_group("deliveries_total", "Records delivered to consumers.")
_REDELIVERED = _by_group(
    "redeliveries_total", "Deliveries of records that had been delivered before."
)
_DEAD = _by_group("dead_letters_total", "Records that became dead letters.")


def collect(partitions: SharePartitions, *, groups_max: int) -> Iterator[str]:
    if not groups_max:
        return
    counters = copied(partitions.counters.items)[:groups_max]
    shown = {group_id for group_id, _ in counters}
    led = [each for each in copied(partitions.led) if each.key.group_id in shown]
    rows = [(_labels(each), _values(each)) for each in led]
    for index, family in enumerate(_GAUGES):
        yield from family.lines((labels, values[index]) for labels, values in rows)
    yield from _counters(counters)


def _counters(counters: list[tuple[str, ShareCounters]]) -> Iterator[str]:
    yield from _DELIVERED.by((group, each.deliveries) for group, each in counters)
    yield from _REDELIVERED.by((group, each.redeliveries) for group, each in counters)
    yield from _DEAD.by((group, each.dead_letters) for group, each in counters)


def _labels(led: LedSharePartition) -> str:
    topic, index = led.partition.log.topic_partition
    return labelled(_GAUGES[0].labels, (led.key.group_id, topic, index))


def _values(led: LedSharePartition) -> tuple[int, ...]:
    state = led.state
    unread = max(0, led.partition.log.high_watermark - state.end_offset)
    waiting = state.waiting_count + state.archiving_count
    return (
        state.acquired_count,
        state.waiting_count,
        state.archiving_count,
        unread + state.available_count + state.acquired_count + waiting,
    )
