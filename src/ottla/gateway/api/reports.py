"""What became of records that were published."""

import json
from collections.abc import Sequence
from typing import Any

from ottla.gateway.core.partition_writer import Published
from ottla.gateway.problems import problem_of


def report(topic: str, outcome: Published | Exception) -> dict[str, Any]:
    """Where it is, or the problem."""
    if isinstance(outcome, Exception):
        return problem_of(outcome).body()
    return {
        "topic": topic,
        "partition": outcome.partition,
        "offset": outcome.offset,
        "timestamp": outcome.timestamp_ms,
    }


def encode_reports(topic: str, outcomes: Sequence[Published | Exception]) -> bytes:
    """`{"records": [...]}`, written by hand where nothing failed, as batches are large."""
    name = json.dumps(topic)
    reports = []
    for outcome in outcomes:
        if isinstance(outcome, Published) and outcome.offset is not None:
            partition, offset, timestamp_ms = outcome
            reports.append(
                f'{{"topic":{name},"partition":{partition},"offset":{offset},'
                f'"timestamp":{timestamp_ms}}}'
            )
        else:
            reports.append(json.dumps(report(topic, outcome)))
    return f'{{"records":[{",".join(reports)}]}}'.encode()
