"""The records that the built-in probe sends through every broker."""

from collections.abc import Iterator, Mapping

from ottla.node.metrics.family import Section, copied, labelled
from ottla.node.probe import ProbeCounters

SECTION = Section("Probe")

_RECORDS = SECTION.counter(
    "ottla_probe_records_total",
    "Records sent through a broker: back, or lost. From the controller's node alone, with"
    " probe.interval.ms.",
    ("broker", "result"),
)
_DURATION = SECTION.histogram(
    "ottla_probe_duration_seconds",
    "From the write of a record until it was read back.",
    ("broker",),
)


def collect(probed: Mapping[int, ProbeCounters]) -> Iterator[str]:
    brokers = sorted(copied(probed.items))
    if not brokers:
        return
    yield from _RECORDS.lines(
        (labelled(_RECORDS.labels, (broker, result)), count)
        for broker, each in brokers
        for result, count in (("back", sum(each.counts)), ("lost", each.lost))
    )
    yield from _DURATION.histogram(((str(broker),), each) for broker, each in brokers)
