"""`ottla dump`: print what is in segments and indexes, without a broker."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ottla.cli.dump_index import INDEX_SUFFIXES, dump_index
from ottla.cli.dump_segment import SEGMENT_SUFFIXES, dump_segment
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.parameters import AsJson, Flag


def dump(
    paths: Annotated[list[Path], Parameter(name="path")],
    /,
    *,
    deep: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Print the contents of log segments (.log), metadata snapshots (.checkpoint) and indexes
    (.index, .timeindex, .txnindex). No broker is needed. Exits with 1 if a file is damaged.

    Args:
        paths: Files, or directories of partitions.
        deep: Also print the records of each batch.
    """
    if not paths:
        raise UsageError("name a file or the directory of a partition")
    problems = []
    for file in [file for path in paths for file in _files_of(path)]:
        if file.suffix in INDEX_SUFFIXES:
            problems += dump_index(file, as_json=as_json)
        else:
            problems += dump_segment(file, deep=deep, as_json=as_json)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise CommandError(problems[0] + more)


def _files_of(path: Path) -> list[Path]:
    suffixes = SEGMENT_SUFFIXES | INDEX_SUFFIXES
    if path.is_dir():
        segments = sorted(file for file in path.iterdir() if file.suffix in SEGMENT_SUFFIXES)
        if not segments:
            raise CommandError(f"{path} has no segments; name the directory of a partition")
        return segments
    if not path.exists():
        raise CommandError(f"there is no {path}")
    if path.suffix not in suffixes:
        raise UsageError(f"{path} is none of {', '.join(sorted(suffixes))}")
    return [path]
