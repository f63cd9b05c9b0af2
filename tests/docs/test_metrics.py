from pathlib import Path

from ottla.node.metrics.reference import reference

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_document_is_that_of_the_declarations() -> None:
    assert DOCUMENT.read_text() == reference(), "run `make docs`"
