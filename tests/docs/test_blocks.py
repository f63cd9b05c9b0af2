import pytest
from tests.docs.blocks import matches


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("id ...\nb\n", "id 123\nb\n", True),
        ("id ...\nb\n", "id 123\nc\nb\n", False),
        ("a ... c\n", "a b c\n", True),
        ("a\n...\n", "a\nb\nc\n", True),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nb\nc\n", False),
        ("", "a\n", False),
    ],
)
def test_shown_output(shown: str, printed: str, expected: bool) -> None:
    assert matches(shown, printed) is expected
