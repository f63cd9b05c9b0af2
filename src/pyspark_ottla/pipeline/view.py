"""A pipeline's activity for people: a live table, or one line per batch."""

from collections.abc import Callable
from typing import Any, Protocol, TextIO

from pyspark_ottla.pipeline.progress import Progress, QueryProgress


class View(Protocol):
    def show(self, progress: Progress) -> None: ...

    def print(self, text: str) -> None:
        """Print without disturbing the view."""

    def close(self) -> None: ...


def open_view(stream: TextIO) -> View:
    return TableView(stream) if stream.isatty() else LineView(stream)


class LineView:
    """For logs: one line when a batch ends, or a query fails or ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._batches: dict[str, int] = {}

    def show(self, progress: Progress) -> None:
        for query in progress.queries.values():
            if query.batches != self._batches.get(query.name, 0):
                self._batches[query.name] = query.batches
                self.print(batch_line(progress.pipeline, query))

    def print(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Nothing to release."""


def batch_line(pipeline: str, query: QueryProgress) -> str:
    parts = [
        f"{pipeline}.{query.name}: batch {query.batch_id} in {query.batch_ms} ms"
        f" at {query.rows_in_per_s:.0f} rows/s",
        f"so far {counted(query.rows_in, 'row')} in",
        f"{query.rows_out} out",
        f"lag {query.lag}",
    ]
    if query.state_rows:
        parts.append(f"state {counted(query.state_rows, 'row')}")
    if refused := describe_refused(query):
        parts.append(f"refused {refused}")
    return ", ".join(parts)


def counted(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def describe_refused(query: QueryProgress) -> str:
    return " ".join(f"{name}={count}" for name, count in query.refused.items() if count)


Cell = Callable[[QueryProgress], str]

_COLUMNS: tuple[tuple[str, Cell], ...] = (
    ("ROWS\nIN", lambda query: short(query.rows_in)),
    ("\nIN/S", lambda query: short(query.rows_in_per_s)),
    ("ROWS\nOUT", lambda query: short(query.rows_out)),
    ("\nOUT/S", lambda query: short(query.rows_out_per_s)),
    ("\nLAG", lambda query: short(query.lag)),
    ("BATCH\nMS", lambda query: short(query.batch_ms)),
    ("STATE\nROWS", lambda query: short(query.state_rows)),
    ("STATE\nBYTES", lambda query: short(query.state_bytes)),
    ("ROWS\nREFUSED", lambda query: short(sum(query.refused.values()))),
)
_WHOLE_UP_TO = 99_999
_UNITS = "kMG"


def short(number: float) -> str:
    """At most six characters: 99999, 123k, 1.2M, 123M, 45G."""
    if number <= _WHOLE_UP_TO:
        return f"{number:.0f}"
    thousands = min((len(f"{number:.0f}") - 1) // 3, len(_UNITS))
    scaled = number / 1000**thousands
    digits = 0 if scaled >= 10 else 1
    return f"{scaled:.{digits}f}{_UNITS[thousands - 1]}"


class TableView:
    """For a terminal: one line per sink, redrawn as the numbers change."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=stream)
        self._live = Live(console=self._console, auto_refresh=False)
        self._live.start()

    def show(self, progress: Progress) -> None:
        self._live.update(draw(progress), refresh=True)

    def print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        self._live.stop()


def draw(progress: Progress) -> Any:
    """The numbers, and below them each sink's target and failures."""
    from rich.console import Group

    lines = [_line(query) for query in progress.queries.values()]
    return Group(_numbers(progress), *lines)


def _numbers(progress: Progress) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=progress.pipeline)
    table.title_justify = "left"
    table.padding = (0, 1, 0, 0)
    table.add_column("\nSINK", no_wrap=True)
    for title, _ in _COLUMNS:
        table.add_column(title, justify="right", no_wrap=True)
    for query in progress.queries.values():
        table.add_row(query.name, *(cell(query) for _, cell in _COLUMNS), style=_style(query))
    return table


def _line(query: QueryProgress) -> Any:
    from rich.text import Text

    if query.error:
        return Text(f"{query.name} has failed: {query.error}", style=_style(query))
    state = "writes to" if query.is_running else "has ended; its rows are in"
    return Text(f"{query.name} {state} {query.target}", style="dim")


def _style(query: QueryProgress) -> str:
    if query.error:
        return "red"
    return "green" if query.is_running else ""
