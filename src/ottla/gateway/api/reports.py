"""What became of a record that was published."""

from typing import Any

from ottla.gateway.core.publishing import Published
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
