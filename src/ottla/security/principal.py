"""Principals: `User:alice`, as Kafka writes them."""

from typing import Final, NamedTuple

USER: Final = "User"


class Principal(NamedTuple):
    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")


def parse_principal(text: str) -> Principal:
    """`Type:name`; ValueError for anything else."""
    principal_type, colon, name = text.partition(":")
    if not (principal_type and colon and name):
        raise ValueError(f"{text!r} is not of the form User:name")
    return Principal(principal_type, name)


def parse_super_users(text: str) -> frozenset[Principal]:
    """Separated by semicolons, because certificate names contain commas."""
    return frozenset(parse_principal(item) for item in map(str.strip, text.split(";")) if item)
