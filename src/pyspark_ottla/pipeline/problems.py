"""A problem in a pipeline: where in its file, what, and what to do."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Problem(NamedTuple):
    line: int  # From 1; 0 for the file as a whole.
    message: str


class PipelineError(Exception):
    """The pipeline cannot run as it is."""

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(_describe(path, problem) for problem in self.problems))

    @classmethod
    def at(cls, path: Path, line: int, message: str) -> "PipelineError":
        """The pipeline has this one problem."""
        return cls(path, [Problem(line, message)])


def _describe(path: Path, problem: Problem) -> str:
    location = f"{path}:{problem.line}" if problem.line else str(path)
    return f"{location}: {problem.message}"
