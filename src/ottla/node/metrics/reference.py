"""Generates docs/metrics.md from the declarations: `python -m ottla.node.metrics.reference`."""

import sys
from collections.abc import Iterator

from ottla.node.metrics.family import Family, Section
from ottla.node.metrics.page import SECTIONS

_HEADER = """\
# Metrics

Generated from the declarations in the code by `make docs`; do not edit by hand.

A node with `metrics.port` or `--http` serves these to Prometheus at `/metrics`.
[Operations](OPERATIONS.md#metrics) says how to turn them on and what to look at first, the
[runbooks](runbooks.md) what to do when something is wrong. Every node reports only its own part, so
sum over the nodes, unless the text says otherwise. Names that begin with `kafka_` are those
of the exporter that most dashboards for Kafka expect.

Metrics of the process (`process_resident_memory_bytes`, `process_open_fds`,
`process_cpu_seconds_total` and the like) and of Python's garbage collector are included.
[Gateways](http.md#metrics) and [pipelines](pipelines.md#monitoring) serve their own.

Durations are histograms with bounds from 0.26 ms to 17 s, each four times the previous one.
"""


def reference() -> str:
    return _HEADER + "".join(line for section in SECTIONS for line in _section(section))


def _section(section: Section) -> Iterator[str]:
    yield f"\n## {section.title}\n\n| metric | type | labels | |\n| --- | --- | --- | --- |\n"
    for family in section.families:
        labels = ", ".join(f"`{label}`" for label in family.labels)
        yield f"| `{family.name}` | {family.kind} | {labels} | {_text(family)} |\n"


def _text(family: Family) -> str:
    """Includes the setting that omits it."""
    if not family.setting:
        return family.text
    return f"{family.text} See [`{family.setting}`](config.md)."


if __name__ == "__main__":
    sys.stdout.write(reference())
