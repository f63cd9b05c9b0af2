import pytest

from ottla.cli.errors import UsageError
from ottla.cli.replication_throttle import parse_rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("500000", 500_000),
        ("10MB", 10_000_000),
        ("1.5m", 1_500_000),
        ("2 GiB/s", 2 << 30),
        ("64 KiB", 64 << 10),
        (None, None),
    ],
)
def test_rates(text: str | None, rate: int | None) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "0", "fast", "-5", "10 TB", "1e6", "MB"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(UsageError, match="is not a rate such as 500000 or 10MB"):
        parse_rate(text)
