"""Reads server-sent events as a browser does."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import httpx
from tests.gateway.gateway_process import PATIENT


class Event(NamedTuple):
    type: str
    data: str
    id: str  # The last one that came, also without data.

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class EventSource:
    """One stream; it is open, and at its beginning, when the context is entered."""

    def __init__(self, url: str, *, has_id: bool = True, **options: Any) -> None:
        self._has_id = has_id
        self._client = httpx.Client(timeout=PATIENT)
        self._context = self._client.stream("GET", url, **options)
        self.last_id = ""
        self.comments_count = 0

    def __enter__(self) -> Self:
        response = self._context.__enter__()
        assert response.status_code == httpx.codes.OK, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        self._lines = response.iter_lines()
        while self._has_id and not self.last_id:
            self._read_block()
        return self

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)
        self._client.close()

    def __iter__(self) -> Iterator[Event]:
        while (fields := self._read_block()) is not None:
            if "data" in fields:
                yield Event(fields.get("event", "message"), fields["data"], self.last_id)

    def take(self, count: int) -> list[Event]:
        found = []
        for event in self:
            found.append(event)
            if len(found) == count:
                return found
        raise AssertionError(f"the stream ended after {found}")

    def wait_for_comment(self) -> None:
        count = self.comments_count
        while self.comments_count == count:
            self._read_block()

    def _read_block(self) -> dict[str, str] | None:
        """The fields up to an empty line; None at the end."""
        fields: dict[str, str] = {}
        for line in self._lines:
            if not line:
                self.last_id = fields.get("id", self.last_id)
                return fields
            name, _, value = line.partition(":")
            self.comments_count += not name
            fields[name] = value.removeprefix(" ")
        return None
