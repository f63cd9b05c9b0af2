"""Groups coordinated here: their states, their rebalances, and their lag."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from ottla.coordination.coordinators import Coordinators
from ottla.node.config import METRICS_GROUPS_MAX
from ottla.node.metrics.family import Family, Number, Section, copied, labelled
from ottla.node.metrics.lag import GroupLag, LagWatch
from ottla.protocol.errors import ApiError
from ottla.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupMachine
    from ottla.groups.overview import GroupOverview

SECTION = Section("Groups and lag")
_SETTING: Final = METRICS_GROUPS_MAX.name

_GROUPS = SECTION.gauge("ottla_groups", "Groups by type and state.", ("type", "state"))
_REBALANCES = SECTION.counter("ottla_group_rebalances_total", "Rebalances of groups.")
_LEFT_OUT = SECTION.gauge(
    "ottla_groups_left_out",
    "Groups with committed offsets but no metrics of their own, beyond metrics.groups.max.",
)


def _lag(name: str, text: str, labels: tuple[str, ...]) -> Family:
    return SECTION.gauge(name, text, labels, _SETTING)


_OWN: Final = ("group", "topic", "partition")
_LAG_RECORDS = _lag(
    "ottla_group_lag_records", "Committed records that the group has not read.", _OWN
)
_LAG_SECONDS = _lag(
    "ottla_group_lag_seconds",
    "The age of the first record that the group has not read, by its timestamp; 0 when it has read"
    " all. Nothing where records have no timestamp.",
    _OWN,
)
_KAFKA: Final = ("consumergroup", "topic", "partition")
_KAFKA_SUM: Final = ("consumergroup", "topic")
_KAFKA_OFFSET = _lag("kafka_consumergroup_current_offset", "Committed offset.", _KAFKA)
_KAFKA_OFFSET_SUM = _lag(
    "kafka_consumergroup_current_offset_sum", "Committed offsets of all partitions.", _KAFKA_SUM
)
_KAFKA_LAG = _lag("kafka_consumergroup_lag", "Same as ottla_group_lag_records.", _KAFKA)
_KAFKA_LAG_SUM = _lag("kafka_consumergroup_lag_sum", "Lag of all partitions.", _KAFKA_SUM)
_KAFKA_MEMBERS = _lag("kafka_consumergroup_members", "Members of the group.", ("consumergroup",))


class Rebalances:
    """Counts rebalances by the progress of group generations between scrapes."""

    def __init__(self) -> None:
        self.count = 0
        self._generations: dict[str, int] = {}

    def see(self, groups: "list[GroupOverview]") -> None:
        before = self._generations
        self._generations = {group.group_id: group.generation for group in groups}
        self.count += sum(
            max(0, generation - before.get(group_id, generation))
            for group_id, generation in self._generations.items()
        )


def collect(
    coordinators: "Coordinators[GroupMachine]",
    watch: LagWatch,
    rebalances: Rebalances,
    now_ms: int,
    *,
    groups_max: int,
) -> Iterator[str]:
    groups: list[GroupOverview] = []
    for runtime in coordinators.all():
        try:
            groups.extend(copied(runtime.machine.overview))
        except ApiError:
            continue  # It is loading.
        yield ""
    states = Counter((group.type_name, group.state_name) for group in groups)
    rows = [(labelled(_GROUPS.labels, key), count) for key, count in sorted(states.items())]
    yield from _GROUPS.lines(rows)
    rebalances.see(groups)
    yield from _REBALANCES.line(rebalances.count)
    yield from _LEFT_OUT.line(watch.left_out_count)
    if groups_max:
        yield from _lags(watch.lags, now_ms)
        members = [(group.group_id, group.members_count) for group in groups]
        yield from _KAFKA_MEMBERS.by(members[:groups_max])


def _lags(lags: list[GroupLag], now_ms: int) -> Iterator[str]:
    own: list[tuple[str, GroupLag]] = []
    kafka: list[tuple[str, GroupLag]] = []
    for lag in lags:
        values = (lag.group_id, lag.topic, lag.partition)
        own.append((labelled(_OWN, values), lag))
        kafka.append((labelled(_KAFKA, values), lag))
        yield ""
    yield from _LAG_RECORDS.lines((labels, lag.records) for labels, lag in own)
    yield from _LAG_SECONDS.lines(
        (labels, max(0, now_ms - lag.since_ms) / 1000 if lag.records else 0)
        for labels, lag in own
        if not lag.records or lag.since_ms != NO_TIMESTAMP
    )
    yield from _KAFKA_OFFSET.lines((labels, lag.offset) for labels, lag in kafka)
    yield from _KAFKA_OFFSET_SUM.lines(_sums(lags, lambda lag: lag.offset))
    yield from _KAFKA_LAG.lines((labels, lag.records) for labels, lag in kafka)
    yield from _KAFKA_LAG_SUM.lines(_sums(lags, lambda lag: lag.records))


def _sums(lags: list[GroupLag], value: Callable[[GroupLag], int]) -> list[tuple[str, Number]]:
    sums: Counter[tuple[str, str]] = Counter()
    for lag in lags:
        sums[lag.group_id, lag.topic] += value(lag)
    return [(labelled(_KAFKA_SUM, key), total) for key, total in sums.items()]
