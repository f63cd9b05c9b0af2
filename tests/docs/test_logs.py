from pathlib import Path

from ottla.node.log_reference import reference

DOCUMENT = Path(__file__).parents[2] / "docs" / "logs.md"


def test_the_document_is_that_of_the_code() -> None:
    assert DOCUMENT.read_text() == reference(), "run `make docs`"
