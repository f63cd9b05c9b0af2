"""What commands print: tables for people, JSON for programs.

On a terminal a table is drawn by rich. Elsewhere it is plain text in aligned columns, so that it
can be read in a log and split by a script; its columns only ever grow at the right.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

Row = Mapping[str, object]

GAP = 2  # Between columns.


def print_json(document: object) -> None:
    print_line(json.dumps(document, indent=2, ensure_ascii=False))


def print_outcome(document: object, *lines: str, as_json: bool) -> None:
    """As JSON, or the lines."""
    if as_json:
        print_json(document)
    else:
        for line in lines:
            print_line(line)


def print_line(text: str, stream: TextIO | None = None) -> None:
    (stream or sys.stdout).write(text + "\n")


def print_now(text: str, stream: TextIO | None = None) -> None:
    """A line of something that goes on, for whoever watches it through a pipe."""
    print_line(text, stream)
    (stream or sys.stdout).flush()


def print_rows(columns: Sequence[str], rows: Sequence[Row], *, exact_names: bool = False) -> None:
    """Print the columns, which are keys of each row, under their names in capitals.

    With `exact_names` under the names as they are, which somebody may want to copy.
    """
    titles = [column if exact_names else column.replace("_", " ").upper() for column in columns]
    cells = [[format_cell(row.get(column)) for column in columns] for row in rows]
    if sys.stdout.isatty():
        _print_on_terminal(titles, cells)
    else:
        _print_plain(titles, cells)


def print_listing(columns: Sequence[str], rows: Sequence[Row], *, as_json: bool) -> None:
    """As a table of these columns, or as JSON with all that the rows have."""
    if as_json:
        print_json(rows)
    else:
        print_rows(columns, rows)


def format_cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def format_size(size: int) -> str:
    """With a unit, to three digits."""
    number = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.4g} TB"


def some(names: Sequence[object], shown: int = 3) -> str:
    """A list that stays short however long it is."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(map(str, names[:shown])) + more


def _print_plain(titles: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    lines = [titles, *cells]
    widths = [max(len(line[index]) for line in lines) for index in range(len(titles))]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print_line("  ".join(padded).rstrip())


def _print_on_terminal(titles: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # The box puts a space between columns, the padding another one.
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    widths = [_width(index, titles, cells) for index in range(len(titles))]
    for title, width in zip(titles, widths, strict=True):
        table.add_column(title, min_width=width, no_wrap=len(title) <= width)
    for line in cells:
        table.add_row(*map(Text, line))
    console = Console()
    # Nothing is cut: titles break between words, and then lines are longer than the terminal.
    console.width = max(console.width, sum(widths) + GAP * (len(widths) - 1))
    console.print(table, crop=False)


def _width(index: int, titles: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    words = titles[index].split()
    return max(len(text) for text in (*words, *(line[index] for line in cells)))
