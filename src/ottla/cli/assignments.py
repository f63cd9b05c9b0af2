"""Repeated `key=value` arguments."""

from collections.abc import Sequence

from ottla.cli.errors import UsageError


def parse_assignments(flag: str, assignments: Sequence[str]) -> dict[str, str]:
    return dict(parse_pairs(flag, assignments))


def parse_pairs(flag: str, assignments: Sequence[str]) -> list[tuple[str, str]]:
    """Unlike `parse_assignments` this keeps keys that come more than once."""
    pairs = []
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{flag} {assignment!r} is not of the form key=value")
        pairs.append((key.strip(), value))
    return pairs
