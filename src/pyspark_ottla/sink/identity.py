"""Names of the sink's transactions, and how to parse them.

    ottla-sink.<sinkId>.<batchId>.<runId>.<partition>.<task attempt>

A name is used once, by one attempt of one task. Its batch id makes it safe to abort: see
`two_phase`. The run id is needed because Spark counts task attempts from zero after a restart.
"""

import re
from dataclasses import dataclass

_PREFIX = "ottla-sink"
_RUN_ID = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class BatchName:
    """All attempts of all tasks of one batch in one run of the query."""

    sink_id: str
    batch_id: int
    run_id: str

    def __post_init__(self) -> None:
        assert _RUN_ID.fullmatch(self.run_id), self.run_id

    def transactional_id(self, partition: int, attempt: int) -> str:
        run = f"{_PREFIX}.{self.sink_id}.{self.batch_id}.{self.run_id}"
        return f"{run}.{partition}.{attempt}"

    @property
    def pattern(self) -> str:
        return rf"{_PREFIX}\.{self.sink_id}\.{self.batch_id}\.{self.run_id}\..*"


def deciding_id(sink_id: str) -> str:
    """The transactional id for a sink's decisions."""
    return f"{_PREFIX}-decisions.{sink_id}"


def pattern_of(sink_id: str) -> str:
    """Matches the transactional ids of a sink's tasks."""
    return rf"{_PREFIX}\.{sink_id}\.\d+\..*"


def batch_of(transactional_id: str) -> int:
    """The batch id in a transactional id that `pattern_of` matches."""
    return int(transactional_id.split(".")[2])
