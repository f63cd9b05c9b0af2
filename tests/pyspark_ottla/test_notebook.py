import xml.etree.ElementTree as ET
from typing import Any

import pytest
from tests.pyspark_ottla.pipeline.reports import report

from pyspark_ottla import ottla_progress
from pyspark_ottla.notebook import batches_of, render_html


class Ended:
    """A finished query, as in Spark."""

    name = "<totals>"
    id = "1"
    isActive = False  # noqa: N815
    recentProgress = (report(0, rows=100), report(1, rows=50))  # noqa: N815

    def exception(self) -> Any:
        return None


def test_the_figures_are_those_of_each_batch() -> None:
    first, second = batches_of(Ended.recentProgress)
    assert (first.rows_in, second.rows_in, second.batch_id, second.lag) == (100, 50, 1, 20)


def test_html_has_a_table_and_two_plots() -> None:
    drawn = ET.fromstring(ottla_progress(Ended())._repr_html_())
    assert "".join(drawn.itertext()).startswith("<totals> ended")
    cells = [cell.text for cell in drawn.iter("td")]
    assert cells == ["1", "50", "100", "500", "20", "7"]
    points = [line.get("points") for line in drawn.iter("polyline")]
    assert points == ["0.0,0.0 320.0,24.0", "0.0,0.0 320.0,0.0"]


def test_a_query_without_a_batch() -> None:
    assert render_html("q", "running", []) == (
        "<div style='font-family:sans-serif;font-size:13px'><b>q</b> running<table></table></div>"
    )


def test_a_plain_shell(capsys: pytest.CaptureFixture[str]) -> None:
    view = ottla_progress(Ended())
    expected = "<totals>: ended, batch 1, rows 50, rows/s 100, ms 500, lag 20, state rows 7"
    assert repr(view) == expected
    view.watch()
    assert capsys.readouterr().out == f"{expected}\n"
