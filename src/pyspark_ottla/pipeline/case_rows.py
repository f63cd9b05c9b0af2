"""Compares actual rows with expected ones.

Order does not matter. Columns whose names begin with `_` are compared only if a row names them.
"""

import base64
import datetime as dt
import decimal
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

_TOLERANCE = 1e-9


def find_differences(found: Sequence[Row], expected: Sequence[Row]) -> list[str]:
    """One line per difference; empty if the rows are the same."""
    left = [plain_row(row) for row in found]
    missing = []
    for row in map(plain_row, expected):
        match = next((each for each in left if not _differing(each, row)), None)
        if match is None:
            missing.append(row)
        else:
            left.remove(match)
    lines = []
    for row in missing:
        nearest = _nearest(row, left)
        if nearest is None:
            lines.append(f"- missing     {_text(row)}")
            continue
        left.remove(nearest)
        shown = ", ".join(
            f"{name} is {_text(nearest.get(name))} and not {_text(row.get(name))}"
            for name in _differing(nearest, row)
        )
        lines.append(f"~ differs     {_text(row)}: {shown}")
    return lines + [f"+ unexpected  {_text(_visible(row))}" for row in left]


def plain_row(row: Row) -> dict[str, Any]:
    return {str(name): _plain(value) for name, value in row.items()}


def as_json_rows(rows: Sequence[Row]) -> list[Any]:
    return [json.loads(_text(plain_row(row))) for row in rows]


def _visible(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("_")}


def _nearest(row: Row, candidates: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The row with the fewest differing columns, if any is similar."""
    by_count = [(len(_differing(each, row)), index) for index, each in enumerate(candidates)]
    count, index = min(by_count, default=(0, -1))
    alike = count < len(_compared(candidates[index], row)) if index >= 0 else False
    return candidates[index] if alike else None


def _compared(found: Row, expected: Row) -> set[str]:
    return _visible(found).keys() | expected.keys()


def _differing(found: Row, expected: Row) -> list[str]:
    names = _compared(found, expected)
    return sorted(
        name
        for name in names
        if (name in found) != (name in expected) or not _is_same(found[name], expected[name])
    )


def _is_same(left: Any, right: Any) -> bool:
    if isinstance(left, dt.datetime) or isinstance(right, dt.datetime):
        try:
            return as_time(left) == as_time(right)
        except ValueError:
            return False
    if _is_number(left) and _is_number(right):
        return math.isclose(left, right, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_is_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_time(value: Any) -> dt.datetime:
    """From a time or its text, in UTC if it has no zone. Raises ValueError."""
    time = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(str(value))
    return time if time.tzinfo else time.replace(tzinfo=dt.UTC)


def _plain(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=lambda each: each.isoformat())
