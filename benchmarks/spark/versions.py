"""The section of the results with a row for each minor version of Spark.

A run measures its own Spark and replaces that version's row. The section comes last in the
document; a run that rewrites the rest keeps it.
"""

from collections.abc import Iterable

from benchmarks import report
from benchmarks.results import REFERENCE, SUBJECT, Results, Row

SCENARIOS = ("reading", "writing")
TITLE = "## By version of Spark"
INTRODUCTION = f"""\
{TITLE}

Written by `make bench-spark-versions`: each minor version in an environment of its own, both
connectors in the same session. A cell is the rows/s of `ottla`, then its ratio to `kafka`, each the
median of its rounds. Asked is a ratio of 1.5 for reading and of 1 for writing. `load` is the load
average when the run began.
"""
COLUMNS = {
    ("rows read", "count, 100 B"): "count, 100 B",
    ("rows read", "groupBy(key).count, 100 B"): "groupBy, 100 B",
    ("rows read", "count, 1024 B"): "count, 1 KB",
    ("rows read", "groupBy(key).count, 1024 B"): "groupBy, 1 KB",
    ("rows written", "100 B, ottla exactly once, kafka at least once"): "write, 100 B",
    ("rows written", "1024 B, ottla exactly once, kafka at least once"): "write, 1 KB",
}
HEADINGS = ("Spark", "jar of kafka", *COLUMNS.values(), "rounds", "load")


def row_of(results: Results, version: str, jar: str, load: str) -> tuple[str, ...]:
    rows = {(row.scenario, row.label): row for row in results.samples}
    measured = [results.ratio(rows[name], REFERENCE) for name in COLUMNS if name in rows]
    rounds = max((ratio.rounds for ratio in measured if ratio), default=0)
    cells = [_cell(results, rows[name]) if name in rows else "-" for name in COLUMNS]
    return (version, jar, *cells, str(rounds), load)


def with_row(document: str, row: Iterable[str]) -> str:
    """The document with this row instead of the one for the same minor version."""
    row = tuple(row)
    others = [other for other in _rows(document) if _minor(other) != _minor(row)]
    ordered = sorted([*others, row], key=_minor)
    before = document.partition(TITLE)[0].rstrip("\n")
    return f"{before}\n\n{INTRODUCTION}\n{report.markdown_table(HEADINGS, ordered)}"


def keep_section(document: str, written_before: str) -> str:
    """The document, with the section taken over from the one it replaces."""
    _, title, section = written_before.partition(TITLE)
    return f"{document.rstrip()}\n\n{title}{section}" if title else document


def _cell(results: Results, row: Row) -> str:
    ours, ratio = results.summary(row, SUBJECT), results.ratio(row, REFERENCE)
    if ours is None:
        return "-"
    return f"{ours.median:.2f} M/s" + (f", {ratio.median:.2f}" if ratio else "")


def _rows(document: str) -> list[tuple[str, ...]]:
    lines = document.partition(TITLE)[2].splitlines()
    table = [line for line in lines if line.startswith("| ")]
    return [tuple(line.strip("| ").split(" | ")) for line in table[2:]]


def _minor(row: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(int(part) for part in row[0].split(".")[:2])
