"""Schemas in Spark's notation (`customer string, tags array<string>`), checked without Spark.

Only certain errors are reported: a type that does not exist, an unclosed bracket, a field without a
type. Everything else is left to Spark.
"""

import difflib
import re
from typing import NamedTuple

_PLAIN = (
    "boolean",
    "byte",
    "tinyint",
    "short",
    "smallint",
    "int",
    "integer",
    "long",
    "bigint",
    "float",
    "real",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "timestamp_ltz",
    "decimal",
    "dec",
    "numeric",
    "char",
    "character",
    "varchar",
    "interval",
    "variant",
    "void",
    "time",
)
_NESTED = ("struct", "array", "map")
_TOKEN = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|[<>(),:]|\S")
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NAME = re.compile(r"`.+`|\w+")


class Wrong(NamedTuple):
    message: str
    line: int  # In the text, from 0.


class _WrongAt(Exception):
    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def find_wrong(text: str) -> Wrong | None:
    """The first error; None if Spark may accept it."""
    try:
        _read(text)
    except _WrongAt as error:
        return Wrong(str(error), text.count("\n", 0, error.position))
    return None


def field_names(text: str) -> list[str]:
    """For a schema that is a list of fields; empty for other notations."""
    try:
        return [name.strip("`").replace("``", "`") for name in _read(text)]
    except _WrongAt:
        return []


def _read(text: str) -> list[str]:
    """The fields' names as written; none unless it is a list of fields. Raises _WrongAt."""
    if text.lstrip().startswith("{"):  # JSON.
        return []
    reader, names = _Reader(text), []
    if re.match(r"\s*(struct|array|map)\s*<", text, re.IGNORECASE):
        reader.read_type("the value")
    else:
        names = reader.read_fields()
    reader.expect_end()
    return names


def quoted(name: str) -> str:
    """A field's name as schemas and SQL take it."""
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = [(match[0], match.start()) for match in _TOKEN.finditer(text)]
        self._next = 0
        self._end = len(text)

    def read_fields(self) -> list[str]:
        """`name type, name: type`; returns the names."""
        names = []
        while True:
            name = self._peek()
            if not _NAME.fullmatch(name):
                raise self._wrong(
                    f"a field is missing before {name!r}" if name else "it ends early"
                )
            names.append(self._take())
            if self._peek() == ":":
                self._take()
            self.read_type(f"field {name}")
            self._skip_remarks()
            if self._peek() != ",":
                return names
            self._take()

    def read_type(self, title: str) -> None:
        name = self._peek().lower()
        if not name or name in (",", ">"):
            raise self._wrong(f"{title} has no type")
        if name not in _NESTED and name not in _PLAIN:
            known = [*_PLAIN, *_NESTED]
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else "such as string, bigint, double"
            raise self._wrong(f"{title}: there is no type {self._peek()}; {hint}")
        self._take()
        if name == "struct":
            self._expect("<", f"{title}: say what is in it, as struct<name: string>")
            if self._peek() != ">":
                self.read_fields()
            self._expect(">")
        elif name == "array":
            self._expect("<", f"{title}: say what is in it, as array<string>")
            self.read_type(f"{title}: array")
            self._expect(">")
        elif name == "map":
            self._expect("<", f"{title}: say what is in it, as map<string, int>")
            self.read_type(f"{title}: map")
            self._expect(",", f"{title}: a map has two types, such as map<string, int>")
            self.read_type(f"{title}: map")
            self._expect(">")
        elif name == "interval":
            while self._peek().lower() in _INTERVAL:
                self._take()
        elif self._peek() == "(":
            while self._peek() not in (")", ""):
                self._take()
            self._expect(")")

    def expect_end(self) -> None:
        if self._peek():
            raise self._wrong(f"a comma is missing before {self._peek()!r}")

    def _skip_remarks(self) -> None:
        """`not null`, `collate`, `comment 'text'`, `default ...`."""
        while self._peek().lower() in ("not", "null", "comment", "collate", "default"):
            takes_more = self._take().lower() in ("comment", "collate", "default")
            if takes_more and self._peek():
                self._take()

    def _expect(self, sign: str, otherwise: str = "") -> None:
        if self._peek() != sign:
            raise self._wrong(otherwise or f"{sign} is missing")
        self._take()

    def _peek(self) -> str:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1][0]

    def _wrong(self, message: str) -> _WrongAt:
        at_end = self._next >= len(self._tokens)
        return _WrongAt(message, self._end if at_end else self._tokens[self._next][1])


_INTERVAL = ("year", "month", "day", "hour", "minute", "second", "to")
