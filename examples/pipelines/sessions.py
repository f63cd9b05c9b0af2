"""Sessions of a clickstream: a user's clicks, until a pause longer than a limit.

A stateful step: Spark keeps one open session per user, and a timer that closes it.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StatefulProcessor

SESSION = "user string, start timestamp, end timestamp, clicks int, pages int"
_STATE = "start_ms bigint, end_ms bigint, clicks int, pages array<string>"


def sessions(clicks: DataFrame, pause: str = "30") -> DataFrame:
    """`clicks` has the columns user, page and at, and a watermark; `pause` is in minutes."""
    return clicks.groupBy("user").transformWithState(
        statefulProcessor=Sessions(timedelta(minutes=float(pause))),
        outputStructType=SESSION,
        outputMode="Append",
        timeMode="EventTime",
    )


class Sessions(StatefulProcessor):
    def __init__(self, pause: timedelta) -> None:
        self._pause_ms = pause // timedelta(milliseconds=1)

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._open = handle.getValueState("open", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        session = self._session()
        for at_ms, page in sorted((_milliseconds(row.at), row.page) for row in rows):
            if session and at_ms - session[1] > self._pause_ms:
                yield _closed(key[0], session)
                session = None
            start, end, clicks, pages = session or (at_ms, at_ms, 0, [])
            session = (min(start, at_ms), max(end, at_ms), clicks + 1, sorted({*pages, page}))
        if session:
            self._open.update(session)
            self._set_timer(session[1] + self._pause_ms)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        session = self._session()
        if session:
            yield _closed(key[0], session)
            self._open.clear()

    def close(self) -> None:
        """There is nothing to release."""

    def _session(self) -> Any:
        return tuple(self._open.get()) if self._open.exists() else None

    def _set_timer(self, expiry_ms: int) -> None:
        for old in list(self._handle.listTimers()):
            self._handle.deleteTimer(old)
        self._handle.registerTimer(expiry_ms)


def _closed(user: str, session: Any) -> Row:
    start_ms, end_ms, clicks, pages = session
    return Row(user=user, start=_time(start_ms), end=_time(end_ms), clicks=clicks, pages=len(pages))


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
