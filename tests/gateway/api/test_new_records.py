"""The fast path through a batch has the exact path's result, or declines the batch."""

import json
from typing import Any

import pytest

from ottla.gateway.api.new_records import record_of_json, records_of_text


@pytest.mark.parametrize(
    "items",
    [
        [],
        [{"value": "a"}, {"value": ""}],
        [{"value": "\u00e9\U0001f600", "key": "k"}, {"key": "", "value": "b"}],
    ],
)
def test_batches_of_texts_are_read_fast(items: list[Any]) -> None:
    body = json.dumps(items).encode()
    assert records_of_text(body) == [record_of_json(item) for item in items]


@pytest.mark.parametrize(
    "body",
    [
        b'[{"value": 123456789012345678901234567890}]',
        b'[{"value": {"a": 1.0}}]',
        b'[{"value": "a", "key": null}]',
        b'[{"value": "a", "partition": 1}]',
        b'[{"value": "a", "colour": "red"}]',
        b'[{"key": "a"}]',
        b'["a"]',
        b'[{"value": "\\ud800"}]',
        b'[{"value": NaN}]',
        b"[",
    ],
)
def test_everything_else_is_left_to_the_exact_way(body: bytes) -> None:
    assert records_of_text(body) is None
