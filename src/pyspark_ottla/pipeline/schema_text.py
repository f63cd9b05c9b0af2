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
_NESTED = {"array": 1, "map": 2}
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
    if text.lstrip().startswith("{"):  # JSON.
        return None
    reader = _Reader(text)
    try:
        if re.match(r"\s*(struct|array|map)\s*<", text, re.IGNORECASE):
            reader.read_type("the value")
        else:
            reader.read_fields("")
        reader.expect_end()
    except _WrongAt as error:
        return Wrong(str(error), text.count("\n", 0, error.position))
    return None


def field_names(text: str) -> list[str]:
    """For a schema that is a list of fields; empty for other notations."""
    if find_wrong(text) is not None or re.match(r"\s*(\{|\w+\s*<)", text):
        return []
    names, depth, is_name = [], 0, True
    for match in _TOKEN.finditer(text):
        token = match[0]
        if is_name and depth == 0:
            names.append(token.strip("`").replace("``", "`"))
            is_name = False
        depth += (token in "<(") - (token in ">)")
        is_name = is_name or (token == "," and depth == 0)
    return names


def quoted(name: str) -> str:
    """A field's name as schemas and SQL take it."""
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = [(match[0], match.start()) for match in _TOKEN.finditer(text)]
        self._next = 0
        self._end = len(text)

    def read_fields(self, closing: str) -> None:
        """`name type, name: type`, up to the closing bracket or the end."""
        while True:
            name = self._peek()
            if not _NAME.fullmatch(name):
                raise self._wrong(
                    f"a field is missing before {name!r}" if name else "it ends early"
                )
            self._take()
            if self._peek() == ":":
                self._take()
            self.read_type(f"field {name}")
            self._skip_remarks()
            if self._peek() != ",":
                break
            self._take()
        if closing:
            self._close(closing)

    def read_type(self, title: str) -> None:
        name = self._peek().lower()
        if not name or name in (",", ">"):
            raise self._wrong(f"{title} has no type")
        if name != "struct" and name not in _NESTED and name not in _PLAIN:
            known = [*_PLAIN, "struct", *_NESTED]
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else "such as string, bigint, double"
            raise self._wrong(f"{title}: there is no type {self._peek()}; {hint}")
        self._take()
        if name == "struct":
            self._open(title, "struct<name: string>")
            if self._peek() == ">":
                self._take()
            else:
                self.read_fields(">")
        elif name in _NESTED:
            self._open(title, "array<string>" if name == "array" else "map<string, int>")
            for number in range(_NESTED[name]):
                if number:
                    self._comma(title)
                self.read_type(f"{title}: {name}")
            self._close(">")
        elif name == "interval":
            while self._peek().lower() in _INTERVAL:
                self._take()
        elif self._peek() == "(":
            while self._peek() not in (")", ""):
                self._take()
            self._close(")")

    def expect_end(self) -> None:
        if self._peek():
            raise self._wrong(f"a comma is missing before {self._peek()!r}")

    def _skip_remarks(self) -> None:
        """`not null`, `collate`, `comment 'text'`, `default ...`."""
        while self._peek().lower() in ("not", "null", "comment", "collate", "default"):
            takes_more = self._take().lower() in ("comment", "collate", "default")
            if takes_more and self._peek():
                self._take()

    def _open(self, title: str, example: str) -> None:
        if self._peek() != "<":
            raise self._wrong(f"{title}: say what is in it, as {example}")
        self._take()

    def _comma(self, title: str) -> None:
        if self._peek() != ",":
            raise self._wrong(f"{title}: a map has two types, such as map<string, int>")
        self._take()

    def _close(self, sign: str) -> None:
        if self._peek() != sign:
            raise self._wrong(f"{sign} is missing")
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
