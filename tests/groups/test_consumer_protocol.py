import pytest
from tests.groups.kit import subscription

from ottla.groups.consumer_protocol import subscribed_topics


def test_the_topics_of_all_members() -> None:
    subscriptions = [subscription("a", "b"), subscription("b", "c")]
    assert subscribed_topics(subscriptions) == frozenset({"a", "b", "c"})
    assert subscribed_topics([]) == frozenset()


def test_what_later_versions_add_is_passed_over() -> None:
    later = b"\x00\x03" + subscription("a")[2:] + b"more"
    assert subscribed_topics([later]) == frozenset({"a"})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x00",
        b"\xff\xff\x00\x00\x00\x00",
        b"\x00\x00\x7f\xff\xff\xff",
        b"\x00\x00\xff\xff\xff\xff",
        b"\x00\x00\x00\x00\x00\x01\x00\x09a",
        b"\x00\x00\x00\x00\x00\x01\x00\x01\xff",
    ],
)
def test_what_cannot_be_read_is_not_known(data: bytes) -> None:
    assert subscribed_topics([subscription("a"), data]) is None
