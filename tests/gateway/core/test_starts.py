import pytest

from ottla.client.wire.offsets import EARLIEST
from ottla.gateway.core.starts import Start, parse_start, resume


@pytest.mark.parametrize(
    ("offset", "time", "expected"),
    [
        (None, None, Start()),
        ("latest", None, Start()),
        ("earliest", None, Start(EARLIEST)),
        ("17", None, Start(offset=17)),
        ("0:17,2:4", None, Start(EARLIEST, offsets={0: 17, 2: 4})),
        (None, "1790000000000", Start(1_790_000_000_000)),
        (None, "2026-11-17T12:00:00Z", Start(1_794_916_800_000)),
        (None, "2026-11-17T12:00:00", Start(1_794_916_800_000)),
        (None, "2026-11-17T13:00:00+01:00", Start(1_794_916_800_000)),
    ],
)
def test_where_to_begin(offset: str | None, time: str | None, expected: Start) -> None:
    assert parse_start(offset, time) == expected


@pytest.mark.parametrize(
    ("offset", "time"),
    [("", None), ("-1", None), ("soon", None), (None, ""), (None, "noon"), ("1", "1")],
)
def test_what_is_no_beginning_is_refused(offset: str | None, time: str | None) -> None:
    with pytest.raises(ValueError, match=r"offset|time"):
        parse_start(offset, time)


def test_what_an_event_id_does_not_name_begins_at_its_beginning() -> None:
    assert resume("1:5") == Start(EARLIEST, offsets={1: 5})
