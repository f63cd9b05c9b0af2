"""Streaming queries in a notebook: a table of the last batch, and charts of rows and lag.

    from pyspark_ottla import ottla_progress

    ottla_progress(query)          # The current state; the cell shows it.
    ottla_progress(query).watch()  # Redrawn with every batch, until the query ends.

Every Python worker imports this with the package, so it imports its dependencies on first use.
"""

import importlib
import time
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_ottla.pipeline.progress import QueryProgress

_POINTS_MAX = 100  # Batches that Spark keeps.
_WIDTH, _HEIGHT = 320, 48
_STYLE = "font-family:sans-serif;font-size:13px"


class QueryView:
    """A query as shown in a notebook: HTML in Jupyter, text in a plain shell."""

    def __init__(self, query: Any) -> None:
        self._query = query

    def watch(self, every_s: float = 1.0) -> None:
        """Returns when the query has ended or the cell is interrupted."""
        show = _display()
        shown = show(self, None)
        while self._query.isActive:
            time.sleep(every_s)
            shown = show(self, shown)
        show(self, shown)

    def _repr_html_(self) -> str:
        return render_html(*self._read())

    def __repr__(self) -> str:
        return render_text(*self._read())

    def _read(self) -> "tuple[str, str, list[QueryProgress]]":
        """Name, state and one entry per batch."""
        name = self._query.name or str(self._query.id)
        failure = self._query.exception()
        state = "running" if self._query.isActive else f"failed: {failure}" if failure else "ended"
        return name, state.splitlines()[0], batches_of(self._query.recentProgress)


def ottla_progress(query: Any) -> QueryView:
    """Rows, rates, lag and state of a streaming query, for a notebook cell."""
    return QueryView(query)


def batches_of(reports: Sequence[Any]) -> "list[QueryProgress]":
    """The figures of each report alone, not cumulative."""
    from pyspark_ottla.pipeline.progress import QueryProgress

    found = [QueryProgress("", "") for _ in reports]
    for query, report in zip(found, reports, strict=True):
        query.count(report)
    return found


def render_text(name: str, state: str, batches: "Sequence[QueryProgress]") -> str:
    cells = ", ".join(f"{title} {value}" for title, value in _cells(batches))
    return f"{name}: {state}" + (f", {cells}" if cells else "")


def render_html(name: str, state: str, batches: "Sequence[QueryProgress]") -> str:
    rows = "".join(
        f"<tr><th style='text-align:left'>{title}</th>"
        f"<td style='text-align:right'>{escape(value)}</td></tr>"
        for title, value in _cells(batches)
    )
    plots = _plot("rows/s", [each.rows_in_per_s for each in batches])
    plots += _plot("lag", [float(each.lag) for each in batches])
    title = f"<b>{escape(name)}</b> {escape(state)}"
    return f"<div style='{_STYLE}'>{title}<table>{rows}</table>{plots}</div>"


def _cells(batches: "Sequence[QueryProgress]") -> list[tuple[str, str]]:
    if not batches:
        return []
    last = batches[-1]
    return [
        ("batch", str(last.batch_id)),
        ("rows", f"{last.rows_in:,}"),
        ("rows/s", f"{last.rows_in_per_s:,.0f}"),
        ("ms", f"{last.batch_ms:,}"),
        ("lag", f"{last.lag:,}"),
        ("state rows", f"{last.state_rows:,}"),
    ]


def _plot(title: str, values: Sequence[float]) -> str:
    """A line over the batches, from 0 to the largest value."""
    values = values[-_POINTS_MAX:]
    if len(values) < 2:
        return ""
    largest = max(values) or 1.0
    step = _WIDTH / (len(values) - 1)
    points = " ".join(
        f"{index * step:.1f},{_HEIGHT - value / largest * _HEIGHT:.1f}"
        for index, value in enumerate(values)
    )
    return (
        f"<div>{title}, at most {max(values):,.0f}</div>"
        f"<svg width='{_WIDTH}' height='{_HEIGHT}' style='border-bottom:1px solid #999'>"
        f"<polyline points='{points}' fill='none' stroke='#2563eb' stroke-width='1.5'/></svg>"
    )


def _display() -> Any:
    """Display an object; in a notebook, redraw it in place."""
    try:
        display = importlib.import_module("IPython.display").display
    except ImportError:

        def show_line(view: Any, shown: Any) -> Any:
            text = repr(view)
            if text != shown:
                print(text)  # noqa: T201
            return text

        return show_line

    def show(view: Any, handle: Any) -> Any:
        if handle is None:
            return display(view, display_id=True)
        handle.update(view)
        return handle

    return show
