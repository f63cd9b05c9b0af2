"""Declarations of configuration keys, with Kafka's names and types.

A package declares the keys that it owns as `ConfigKey` constants next to the code that uses them.
The node combines the declarations into one `ConfigSchema` per scope, the basis of configuration
files, DescribeConfigs and the reference documentation.
"""

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass

T = TypeVar("T")

Validator = Callable[[T], str | None]


class ConfigType(enum.IntEnum):
    """Values as in DescribeConfigs."""

    UNKNOWN = 0  # For an undeclared key.
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_INTEGER_BITS = {ConfigType.INT: 32, ConfigType.SHORT: 16, ConfigType.LONG: 64}


@dataclass(frozen=True, slots=True)
class ConfigKey(Generic[T]):
    name: str
    type: ConfigType
    default: T
    doc: str
    validator: Validator[T] | None = None  # Returns the problem with a value, or None.
    synonym: str | None = None  # For a topic key: the broker key that sets its default.
    dynamic: bool = False  # For a broker key: it can be altered at run time.
    per_listener: bool = False  # `listener.name.<name>.<key>` sets it for one listener.
    broker_only: bool = False  # Altered for one broker, never for all together.
    listener_only: bool = False  # Altered for one listener, never for all together.
    has_effect: bool = True  # False: Kafka's, accepted so that its files and tools work.
    internal: bool = False  # Shown only if set.
    shows_default: bool = True  # False: Kafka has no default, so an unset key reads as null.

    @property
    def sensitive(self) -> bool:
        return self.type in (ConfigType.PASSWORD, ConfigType.UNKNOWN)

    @property
    def default_text(self) -> str | None:
        """The default as shown by DescribeConfigs."""
        shown = self.default is not None and self.shows_default
        return self.format(self.default) if shown else None

    def parse(self, value: object) -> T:
        """Parse text, or a scalar from a configuration file, into a validated value of this key."""
        try:
            parsed = cast("T", _PARSERS.get(self.type, _parse_integer)(value))
        except ValueError:
            raise self._unreadable(value) from None
        bits = _INTEGER_BITS.get(self.type)
        if bits and not -(1 << (bits - 1)) <= cast("int", parsed) < 1 << (bits - 1):
            raise self._unreadable(value)
        problem = self.validator(parsed) if self.validator else None
        if problem:
            raise self._invalid(value, problem)
        return parsed

    def format(self, value: T) -> str:
        """The text form that DescribeConfigs shows and `parse` accepts."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        if isinstance(value, float):
            return _format_double(value)
        return "" if value is None else str(value)

    def _unreadable(self, value: object) -> ApiError:
        is_boolean = self.type is ConfigType.BOOLEAN
        expected = "Expected value to be either true or false"
        return self._invalid(
            value, expected if is_boolean else f"Not a number of type {self.type.name}"
        )

    def _invalid(self, value: object, problem: str) -> ApiError:
        """Worded as in Kafka, which clients and tools compare."""
        if isinstance(value, list | tuple):
            value = ",".join(map(str, value))
        shown = "[hidden]" if self.sensitive else value
        return ApiError(
            ErrorCode.invalid_config,
            f"Invalid value {shown} for configuration {self.name}: {problem}",
        )


def _format_double(value: float) -> str:
    """In Java's format: scientific notation from ten million on, and below a thousandth."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return str(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits, exponent = f"{value:.17e}".split("e")
        mantissa = str(float(digits))
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _parse_boolean(value: object) -> bool:
    words = {"true": True, "false": False}
    text = str(value).strip().lower()
    if text not in words:
        raise ValueError
    return words[text]


def _parse_integer(value: object) -> int:
    if isinstance(value, bool):
        raise ValueError
    return int(_number(value))


def _parse_double(value: object) -> float:
    text = _number(value)
    is_word = text.lstrip("+-")[:1].isalpha()
    if is_word and not isinstance(value, float) and text.lstrip("+-") not in ("Infinity", "NaN"):
        raise ValueError  # Python knows more words than Java.
    return float(text)


def _number(value: object) -> str:
    text = str(value).strip()
    if "_" in text:
        raise ValueError  # Python takes it between digits, and Java does not.
    return text


def _parse_list(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else str(value).split(",")
    return tuple(text for item in items if (text := str(item).strip()))


def _parse_string(value: object) -> str:
    return ",".join(_parse_list(value)) if isinstance(value, list) else str(value).strip()


_PARSERS: dict[ConfigType, Callable[[object], object]] = {
    ConfigType.BOOLEAN: _parse_boolean,
    ConfigType.DOUBLE: _parse_double,
    ConfigType.LIST: _parse_list,
    ConfigType.STRING: _parse_string,
    ConfigType.CLASS: lambda value: str(value).strip(),
    ConfigType.PASSWORD: str,
    ConfigType.UNKNOWN: str,
}


class _Declare:
    """Declares keys of one type; `more` are the other fields of `ConfigKey`."""

    def __init__(self, kind: ConfigType) -> None:
        self._kind = kind

    def __call__(
        self, name: str, default: T, doc: str, validator: Validator[T] | None = None, **more: Any
    ) -> ConfigKey[T]:
        return ConfigKey(name, self._kind, default, doc, validator, **more)


boolean_key = _Declare(ConfigType.BOOLEAN)
double_key = _Declare(ConfigType.DOUBLE)
int_key = _Declare(ConfigType.INT)
list_key = _Declare(ConfigType.LIST)
long_key = _Declare(ConfigType.LONG)
password_key = _Declare(ConfigType.PASSWORD)
short_key = _Declare(ConfigType.SHORT)
string_key = _Declare(ConfigType.STRING)


def between(low: float, high: float) -> Validator[float]:
    low_problem = at_least(low)

    def validate(value: float) -> str | None:
        return low_problem(value) or (
            None if value <= high else f"Value must be no more than {high}"
        )

    return validate


def at_least(low: float) -> Validator[float]:
    return lambda value: None if value >= low else f"Value must be at least {low}"


def one_of(*words: str) -> Validator[str]:
    expected = f"String must be one of: {', '.join(words)}"
    return lambda value: None if value in words else expected


def each_of(*words: str) -> Validator[tuple[str, ...]]:
    def validate(values: tuple[str, ...]) -> str | None:
        strays = [value for value in values if value not in words]
        return f"{strays[0]!r} is not one of {', '.join(words)}" if strays else None

    return validate


def read_by(parse: Callable[[T], object]) -> Validator[T]:
    """The problem with a value is what `parse`, its reader, says in a ValueError."""

    def validate(value: T) -> str | None:
        try:
            parse(value)
        except ValueError as error:
            return str(error)
        return None

    return validate


LISTENER_PREFIX = "listener.name."


def key_of_listener(key: ConfigKey[T], listener_name: str) -> ConfigKey[T]:
    """The key that sets `key` for one listener."""
    name = f"{LISTENER_PREFIX}{listener_name.lower()}.{key.name}"
    return replace(key, name=name, listener_only=False)


def undeclared_key(name: str) -> ConfigKey[str]:
    """An undeclared key that was set for a broker, which Kafka accepts."""
    return ConfigKey(name, ConfigType.UNKNOWN, "", "", shows_default=False)


def declared_keys(namespace: Mapping[str, object]) -> tuple[ConfigKey[Any], ...]:
    """The keys among a module's constants, including imported ones, by name."""
    keys = [key for key in namespace.values() if isinstance(key, ConfigKey)]
    return tuple(sorted(keys, key=attrgetter("name")))


class ConfigSchema:
    """All keys of one scope (broker or topic).

    Keys for single listeners are not listed, since they cannot be enumerated, but can be found.
    """

    def __init__(self, keys: Iterable[ConfigKey[object]]) -> None:
        self._keys = {key.name: key for key in keys}

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __iter__(self) -> Iterator[ConfigKey[object]]:
        return iter(self._keys.values())

    def finds(self, name: str) -> bool:
        """Whether the key exists, also for one listener."""
        return name in self._keys or self._of_listener(name) is not None

    def __getitem__(self, name: str) -> ConfigKey[object]:
        key = self._keys.get(name) or self._of_listener(name)
        if key is None:
            import difflib  # For mistyped names.

            nearest = difflib.get_close_matches(name, self._keys, n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            raise ApiError(ErrorCode.invalid_config, f"unknown config key {name!r}{hint}")
        return key

    def _of_listener(self, name: str) -> ConfigKey[object] | None:
        if not name.startswith(LISTENER_PREFIX):
            return None
        words = name.removeprefix(LISTENER_PREFIX).split(".")
        for end in range(1, len(words)):  # Listener names may contain dots.
            key = self._keys.get(".".join(words[end:]))
            if key is not None and key.per_listener:
                return key_of_listener(key, ".".join(words[:end]))
        return None

    def parse(self, values: Mapping[str, object]) -> dict[str, object]:
        return {name: self[name].parse(value) for name, value in values.items()}


class ConfigValues:
    """Validated values by key, read with the key's own type: `values[SEGMENT_BYTES]` is an int.

    Layers are mappings from key name to parsed value, the strongest first; a key in none of them
    has its default.
    """

    def __init__(self, *layers: Mapping[str, object]) -> None:
        self._layers = layers

    def __getitem__(self, key: ConfigKey[T]) -> T:
        for layer in self._layers:
            if key.name in layer:
                return cast("T", layer[key.name])
        return key.default
