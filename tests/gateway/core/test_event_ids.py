import pytest

from ottla.gateway.core.event_ids import format_event_id, parse_event_id


def test_an_id_is_read_as_it_was_written() -> None:
    positions = {0: 17, 11: 0, 2: 9_000_000_000}
    assert format_event_id(positions) == "0:17,11:0,2:9000000000"
    assert parse_event_id(format_event_id(positions)) == positions


@pytest.mark.parametrize(
    "text", ["", "5", "0:", ":5", "0:1,", "a:1", "0:-1", "0:1;1:2", "٠:١", "0:1\n"]
)
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="partition, colon, next offset"):
        parse_event_id(text)
