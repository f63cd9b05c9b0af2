from pathlib import Path

from ottla.cli.api_reference import updated

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"


def test_the_document_is_that_of_the_table() -> None:
    text = DOCUMENT.read_text()
    assert text == updated(text), "run `make docs`"
