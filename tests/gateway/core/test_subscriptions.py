from typing import Any

import pytest

from ottla.gateway.core.subscriptions import Retry, Settle, Subscription, after_call
from ottla.gateway.core.webhook_calls import WebhookAnswer

ASKED: dict[str, Any] = {"url": "https://example.com/hook?a=1", "topic": "orders"}


def test_what_is_not_said_has_a_default() -> None:
    made = Subscription.create(ASKED, now_ms=5)
    assert made.group == f"webhook-{made.id}"
    assert made.secret.startswith("whsec_")
    assert (made.state, made.start, made.created_ms) == ("active", "latest", 5)
    assert Subscription.create(ASKED, now_ms=5).id != made.id


def test_a_subscription_is_read_as_it_was_written() -> None:
    asked = ASKED | {"filter": {"keys": ["a"]}, "group": "g", "max_deliveries": 3, "concurrency": 1}
    made = Subscription.create(asked, now_ms=5).disabled("410 Gone")
    assert Subscription.from_bytes(made.to_bytes()) == made


def test_the_secret_is_not_shown() -> None:
    made = Subscription.create(ASKED, now_ms=5)
    assert "secret" not in made.shown()
    assert made.secret not in repr(made)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"url": None}, "url"),
        ({"url": "ftp://example.com"}, "https"),
        ({"url": "https://user:secret@example.com/"}, "user name"),
        ({"url": "https:///path"}, "host"),
        ({"url": "https://example.com:99999/"}, "[Pp]ort"),
        ({"url": "https://example.com/a b"}, "percent"),
        ({"url": "https://example.com/\r\nx: y"}, "percent"),
        ({"topic": ""}, "topic"),
        ({"topic": "a/b"}, "topic"),
        ({"topic": "__consumer_offsets"}, "__"),
        ({"group": 5}, "group"),
        ({"secret": "whsec_short"}, "secret"),
        ({"filter": {"key": 1}}, "filter"),
        ({"start": "yesterday"}, "start"),
        ({"max_deliveries": 1}, "max_deliveries"),
        ({"concurrency": True}, "concurrency"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Subscription.create(ASKED | change, now_ms=0)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"filter": {}, "id": "x"}', b"\xff"])
def test_other_bytes_are_no_subscription(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Subscription.from_bytes(data)


SUBSCRIPTION = Subscription.create(ASKED | {"max_deliveries": 4}, now_ms=0)


@pytest.mark.parametrize(
    ("answer", "delivery_count", "expected"),
    [
        (WebhookAnswer(200), 1, Settle.ACKNOWLEDGE),
        (WebhookAnswer(204), 4, Settle.ACKNOWLEDGE),
        (WebhookAnswer(410), 1, Settle.DISABLE),
        (None, 1, Retry(5_000)),
        (WebhookAnswer(500), 2, Retry(10_000)),
        (WebhookAnswer(302), 3, Retry(20_000)),
        (WebhookAnswer(503, retry_after_s=60), 1, Retry(60_000)),
        (WebhookAnswer(429, retry_after_s=1), 1, Retry(5_000)),
        (WebhookAnswer(500), 4, Settle.REJECT),
        (None, 9, Settle.REJECT),
    ],
)
def test_what_an_answer_means(
    answer: WebhookAnswer | None, delivery_count: int, expected: str | Retry
) -> None:
    assert after_call(SUBSCRIPTION, answer, delivery_count) == expected


def test_a_message_id_names_the_record_and_can_be_signed() -> None:
    assert SUBSCRIPTION.message_id(3, 17) == f"msg_{SUBSCRIPTION.id}_3_17"
    assert "." not in SUBSCRIPTION.message_id(3, 17)
