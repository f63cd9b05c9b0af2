"""What a commit says about its batch, kept by the table next to the rows.

sink      the name under which batches are counted
batch     its number, increasing
query     the streaming query, stable over restarts; empty if unknown
rows, bad how many were written, and how many of them did not fit
offsets   for rows of topics: {"orders": {"0": [120, 180]}}, including the first, not the second
ends      where the table ends: {"orders": {"0": 180, "1": 75}}, for all partitions
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark_ottla.tables.address import TableError

Offsets = Mapping[str, Mapping[str, tuple[int, int]]]
Ends = Mapping[str, Mapping[str, int]]

_SINK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def validate_sink_id(sink_id: str) -> None:
    """It becomes part of file names."""
    if not _SINK_ID.fullmatch(sink_id):
        raise TableError(
            f"sink id {sink_id!r} must be 1 to 100 letters, digits, '.', '_' and '-',"
            " and begin with a letter or digit"
        )


@dataclass(frozen=True)
class Batch:
    sink_id: str
    batch_id: int
    query_id: str = ""
    rows: int = 0
    bad_rows: int = 0
    offsets: Offsets = field(default_factory=dict)
    ends: Ends = field(default_factory=dict)

    @property
    def directory(self) -> str:
        """The directory for its attempts' files, in the table's data location."""
        return f"{self.sink_id}/{self.batch_id}"

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "sink": self.sink_id,
            "batch": self.batch_id,
            "query": self.query_id,
            "rows": self.rows,
            "bad": self.bad_rows,
        }
        if self.ends:
            document |= {"offsets": self.offsets, "ends": self.ends}
        return document

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> "Batch":
        offsets = {
            topic: {partition: (start, end) for partition, (start, end) in ranges.items()}
            for topic, ranges in document.get("offsets", {}).items()
        }
        return Batch(
            document["sink"],
            document["batch"],
            document["query"],
            document["rows"],
            document["bad"],
            offsets,
            document.get("ends", {}),
        )
