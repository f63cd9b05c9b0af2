"""Reads configuration files: YAML, or Java properties as in Kafka (`*.properties`)."""

import re
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_KEY: Final = re.compile(r"((?:\\.|[^\\\s=:])*)\s*[=:]?\s*(.*)", re.DOTALL)


class ConfigError(Exception):
    """The configuration is wrong; the message names the key and its location."""


def read_config_file(
    path: Path, file_keys: Iterable[str], is_secret: Callable[[str], bool]
) -> dict[str, object]:
    """`file_keys` are keys with file names, which are relative to this file."""
    try:
        text = path.read_text(encoding="utf-8")
        is_readable = bool(path.stat().st_mode & stat.S_IROTH)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: {error}") from None
    content = parse_properties(text) if path.suffix == ".properties" else _parse_yaml(path, text)
    if is_readable:
        _validate_no_secret(path, content, is_secret)
    keys = tuple(file_keys)
    return {name: _located(path, name, value, keys) for name, value in content.items()}


def parse_properties(text: str) -> dict[str, object]:
    """If a key is repeated, the last value counts, as in Java."""
    values: dict[str, object] = {}
    for line in _logical_lines(text):
        matched = _KEY.fullmatch(line)
        assert matched is not None
        values[_unescaped(matched[1])] = _unescaped(matched[2])
    return values


def _logical_lines(text: str) -> Iterator[str]:
    """Skips comments; a line that ends with an odd number of backslashes continues."""
    pending = ""
    for line in text.splitlines():
        line = line.lstrip(" \t\f")
        if not pending and (not line or line.startswith(("#", "!"))):
            continue
        pending += line
        if (len(pending) - len(pending.rstrip("\\"))) % 2:
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def _unescaped(text: str) -> str:
    def character(matched: re.Match[str]) -> str:
        code = matched[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)

    return _ESCAPE.sub(character, text)


def _parse_yaml(path: Path, text: str) -> dict[str, object]:
    import yaml

    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {_first_problem(error)}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold `key: value` lines, not a {type(content).__name__}")
    for name, value in content.items():
        if isinstance(value, dict):
            nested = f"{name}.{next(iter(value), '')}"
            raise ConfigError(f"{path}: write `{nested}: ...` on one line instead of nesting")
    return {str(name): "" if value is None else value for name, value in content.items()}


def _validate_no_secret(
    path: Path, content: Iterable[str], is_secret: Callable[[str], bool]
) -> None:
    """ConfigError if others can read a file that contains a secret."""
    for name in content:
        if is_secret(name):
            raise ConfigError(
                f"{path} has the secret {name} and others can read it; run `chmod o-rwx {path}`"
            )


def _located(path: Path, name: str, value: object, file_keys: tuple[str, ...]) -> object:
    """File names are relative to the configuration file."""
    if name.endswith(file_keys) and isinstance(value, str) and value:
        return str(path.absolute().parent / value)
    return value


def _first_problem(error: Exception) -> str:
    """PyYAML's messages have several lines; an operator needs the line and the reason."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return problem if mark is None else f"line {mark.line + 1}: {problem}"
