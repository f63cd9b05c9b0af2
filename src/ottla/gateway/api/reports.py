"""Reports on published records."""

import json
from collections.abc import Sequence
from typing import Any

from ottla.gateway.core.partition_writer import Published
from ottla.gateway.core.record_json import encode
from ottla.gateway.problems import problem_of


def report(topic: str, outcome: Published | Exception) -> dict[str, Any]:
    """The record's position, or the problem."""
    if isinstance(outcome, Exception):
        return problem_of(outcome).body()
    return {
        "topic": topic,
        "partition": outcome.partition,
        "offset": outcome.offset,
        "timestamp": outcome.timestamp_ms,
    }


def encode_report(topic: str, outcome: Published | Exception) -> bytes:
    return encode(report(topic, outcome))


def encode_reports(topic: str, outcomes: Sequence[Published | Exception]) -> bytes:
    """`{"records": [...]}`, written by hand if nothing failed, because batches are large."""
    begin = f'{{"topic":{json.dumps(topic)},"partition":'
    reports = [
        f'{begin}{outcome[0]},"offset":{outcome[1]},"timestamp":{outcome[2]}}}'
        if type(outcome) is Published and outcome[1] is not None
        else json.dumps(report(topic, outcome))
        for outcome in outcomes
    ]
    return f'{{"records":[{",".join(reports)}]}}'.encode()
