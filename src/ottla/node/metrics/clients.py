"""The metrics that clients push (KIP-714), each under its original name."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ottla.node.config import METRICS_CLIENTS_MAX
from ottla.node.metrics.family import Section, labelled
from ottla.runtime.client_metrics import ClientMetrics, Pushed, Series

SECTION = Section("Metrics of clients")
_SETTING: Final = METRICS_CLIENTS_MAX.name
_OWN: Final = ("client_id", "client_instance_id", "metric")
_NO_LABEL: Final = re.compile(r"\W", re.ASCII)

_CLIENTS = SECTION.gauge("ottla_client_metrics_clients", "Clients that push metrics to this node.")
_LEFT_OUT = SECTION.counter(
    "ottla_client_metrics_left_out_total",
    "Pushes of clients whose metrics are not shown, beyond metrics.clients.max.",
)
_GAUGES = SECTION.gauge(
    "ottla_client_gauge",
    "What clients that match a subscription push, by the name of their metric; its attributes are"
    " further labels. Gone when the client is silent for three of its intervals.",
    _OWN,
    _SETTING,
)
_COUNTERS = SECTION.counter(
    "ottla_client_counter_total",
    "Like ottla_client_gauge, for counters; counted since the client began to push here.",
    _OWN,
    _SETTING,
)


def collect(known: ClientMetrics) -> Iterator[str]:
    clients = known.shown()
    yield from _CLIENTS.line(len(clients))
    yield from _LEFT_OUT.line(known.left_out_count)
    yield from _GAUGES.lines(
        row for client in clients for row in _rows(client, list(client.gauges.items()))
    )
    yield from _COUNTERS.lines(
        row for client in clients for row in _rows(client, list(client.counters.items()))
    )


def _rows(client: Pushed, values: Iterable[tuple[Series, float]]) -> Iterator[tuple[str, float]]:
    for (name, attributes), value in values:
        others = {_label(key): text for key, text in attributes}
        others = {key: text for key, text in others.items() if key not in _OWN}
        labels = (client.client_id, client.instance_id, name, *others.values())
        yield labelled((*_OWN, *others), labels), value


def _label(key: str) -> str:
    """A valid Prometheus label, which does not begin with a digit."""
    name = _NO_LABEL.sub("_", key)
    return f"_{name}" if not name or name[0].isdigit() else name
