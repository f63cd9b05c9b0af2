from benchmarks.report import as_markdown, show
from benchmarks.results import Better, Requirement, Results, Row
from rich.console import Console


def taken() -> Results:
    results = Results()
    asked = Row("produce", "1 KB", "MB/s", Better.HIGHER, Requirement(ratio_min=1.0))
    for ours, theirs in ((300.0, 200.0), (310.0, 310.0), (290.0, 145.0)):
        results.record(asked, "ottla", ours)
        results.record(asked, "kafka", theirs)
    results.record(Row("start", "first record", "s", Better.LOWER), "ottla", 0.25)
    return results


def test_the_document_has_figures_spreads_ratios_and_verdicts() -> None:
    text = as_markdown(taken(), {"memory": "8 GB", "Ottla flush": "ack|os"}, ["It was busy."])
    assert "**It was busy.**" in text
    assert "| memory | 8 GB |" in text
    assert "| Ottla flush | ack\\|os |" in text
    assert (
        "| produce: 1 KB | ratio to kafka >= 1 | 300 MB/s (290 - 310) | 1.50 (1.00 - 2.00) | met |"
        in text
    )
    assert "| 1 KB | 300 MB/s (290 - 310) | 200 MB/s (145 - 310) | 1.50 (1.00 - 2.00) |" in text
    assert "| first record | 0.25 s |" in text


def test_the_terminal_shows_a_table_for_each_scenario() -> None:
    console = Console(record=True, width=120, file=None, quiet=False)
    with console.capture() as captured:
        show(taken(), console)
    assert "produce" in captured.get()
    assert "start" in captured.get()
