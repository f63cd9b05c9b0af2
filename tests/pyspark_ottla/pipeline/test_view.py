import io

import pytest
from rich.console import Console
from tests.pyspark_ottla.pipeline.reports import report

from pyspark_ottla.pipeline.progress import Progress
from pyspark_ottla.pipeline.view import LineView, TableView, draw, open_view, short


def progress() -> Progress:
    made = Progress("shop")
    made.add("out", "topic totals")
    made.take("out", report())
    return made


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_for_each_batch() -> None:
    stream, shown = io.StringIO(), progress()
    view = open_view(stream)
    assert isinstance(view, LineView)
    view.show(shown)
    view.show(shown)
    shown.take("out", report(1))
    view.show(shown)
    assert stream.getvalue().splitlines() == [
        "shop.out: batch 0 in 500 ms, 100 rows in (200/s), 30 out, lag 20, state 7 rows,"
        " refused orders.positive=4 orders.bad value=1",
        "shop.out: batch 1 in 500 ms, 200 rows in (200/s), 60 out, lag 20, state 7 rows,"
        " refused orders.positive=8 orders.bad value=2",
    ]


def drawn(shown: Progress) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(draw(shown))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_table_on_a_terminal() -> None:
    text = drawn(progress())
    for part in ("out", "topic totals", "100", "200", "30", "7", "4096", "LAG"):
        assert part in text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (99_999, "99999"),
        (123_456, "123k"),
        (1_234_567, "1.2M"),
        (45_600_000_000, "46G"),
        (7_000_000_000_000, "7000G"),
    ],
)
def test_numbers_are_short(number: int, text: str) -> None:
    assert short(number) == text


def test_a_table_shows_what_failed() -> None:
    shown = progress()
    shown.fail("out", "the value at offset 3 is not json")
    text = drawn(shown)
    assert "failed" in text
    assert "the value at offset 3 is not json" in text


def test_a_terminal_gets_the_table() -> None:
    terminal = Terminal()
    view = open_view(terminal)
    assert isinstance(view, TableView)
    view.show(progress())
    view.print("beside [it]")
    view.close()
    assert "topic totals" in terminal.getvalue()
    assert "beside [it]" in terminal.getvalue()
