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
        "shop.out: batch 0 in 500 ms at 200 rows/s, so far 100 rows in, 30 out, lag 20,"
        " state 7 rows, refused orders.positive=4 orders.bad value=1",
        "shop.out: batch 1 in 500 ms at 200 rows/s, so far 200 rows in, 60 out, lag 20,"
        " state 7 rows, refused orders.positive=8 orders.bad value=2",
    ]


def drawn(shown: Progress, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(draw(shown))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_table_on_a_terminal() -> None:
    text = drawn(progress())
    for part in ("100", "200", "30", "7", "4096", "LAG", "out writes to topic totals"):
        assert part in text


def test_it_fits_into_80_columns() -> None:
    shown = Progress("shop")
    shown.add("dead-letter-orders", "topic orders.dead-letter")
    shown.take("dead-letter-orders", report(rows=99_999))
    lines = drawn(shown, width=80).splitlines()
    assert any("dead-letter-orders" in line and "99999" in line for line in lines)


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
    assert "out has failed: the value at offset 3 is not json" in text


def test_a_table_shows_what_has_ended() -> None:
    shown = progress()
    shown.end("out")
    assert "out has ended; its rows are in topic totals" in drawn(shown)


def test_a_terminal_gets_the_table() -> None:
    terminal = Terminal()
    view = open_view(terminal)
    assert isinstance(view, TableView)
    view.show(progress())
    view.print("beside [it]")
    view.close()
    assert "topic totals" in terminal.getvalue()
    assert "beside [it]" in terminal.getvalue()
