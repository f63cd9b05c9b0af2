"""What a node takes from its environment."""

import base64
from uuid import UUID

import pytest

from ottla.node import environment
from ottla.node.environment import random_uuid


def test_ids_do_not_look_like_options_of_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [UUID(bytes=bytes([first]) + bytes(15)) for first in (0xF8, 0xFB, 0xFC)]
    texts = [base64.urlsafe_b64encode(each.bytes).decode()[0] for each in taken]
    assert texts == ["-", "-", "_"]
    coming = iter(taken)
    monkeypatch.setattr(environment, "uuid4", lambda: next(coming))
    assert random_uuid() == taken[-1]
