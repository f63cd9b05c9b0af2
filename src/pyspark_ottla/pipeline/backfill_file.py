"""A pipeline's backfills, stored in `backfills.json` next to its checkpoints.

A backfill's content is decided before it begins, so that an interrupted one continues with the same
portions under the same numbers.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.record import write_file
from pyspark_ottla.pipeline.stretches import Stretch, portions

NAME = "backfills.json"


@dataclass(frozen=True)
class Backfill:
    query: str
    number: int  # Per query, from 1.
    generation: int  # How often the query had been reset.
    target: str
    stretches: list[Stretch]
    records_max: int  # Per portion.
    done: int = 0  # Portions completed.

    @property
    def portions(self) -> list[list[Stretch]]:
        return list(portions(self.stretches, self.records_max))

    @property
    def is_done(self) -> bool:
        return self.done >= len(self.portions)


class BackfillFile:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._path = Path(pipeline.checkpoints, NAME)

    def read(self) -> list[Backfill]:
        """Raises PipelineError for an invalid file."""
        if not self._path.is_file():
            return []
        try:
            return [_backfill(each) for each in json.loads(self._path.read_text())["backfills"]]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            reason = f"{self._path} is not what a backfill has written ({error!r})"
            hint = "without it backfilled rows would be written again"
            raise self._pipeline.error(f"{reason}; {hint}") from None

    def add(self, query: str, target: str, stretches: list[Stretch], records_max: int) -> Backfill:
        before = self.read()
        number = 1 + sum(each.query == query for each in before)
        generation = self._pipeline.generations.get(query, 0)
        added = Backfill(query, number, generation, target, stretches, records_max)
        self._write([*before, added])
        return added

    def advance(self, backfill: Backfill) -> Backfill:
        """One more portion is done."""
        further = replace(backfill, done=backfill.done + 1)
        name = (backfill.query, backfill.number)
        self._write(
            [further if (each.query, each.number) == name else each for each in self.read()]
        )
        return further

    def rename(self, old: str, new: str) -> None:
        """Their sink has been renamed."""
        before = self.read()
        if any(each.query == old for each in before):
            self._write(
                [replace(each, query=new) if each.query == old else each for each in before]
            )

    def _write(self, backfills: list[Backfill]) -> None:
        document = {"version": 1, "backfills": [asdict(each) for each in backfills]}
        write_file(self._path, json.dumps(document, indent=1))


def _backfill(document: dict[str, Any]) -> Backfill:
    stretches = [Stretch(*each) for each in document["stretches"]]
    return Backfill(**document | {"stretches": stretches})
