from pathlib import Path

from ottla.cli.api_reference import reference

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"


def test_the_document_is_that_of_the_table() -> None:
    assert DOCUMENT.read_text() == reference(), "run `make docs`"
