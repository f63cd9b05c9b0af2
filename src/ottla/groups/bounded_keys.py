"""Config keys that a group sets within bounds set by the broker.

For example, a group's `share.session.timeout.ms` is between `group.share.min.session.timeout.ms`
and `group.share.max.session.timeout.ms`; a group without its own value uses the broker's
`group.share.session.timeout.ms`, which is within the bounds as well.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from ottla.protocol.config import ConfigKey, ConfigValues, at_least, between, int_key
from ottla.protocol.errors import ApiError, ErrorCode

T = TypeVar("T")

INT_MAX = 2**31 - 1


class Limit(NamedTuple):
    """A bound, and the range it can be set to."""

    default: int
    least: int
    most: int = INT_MAX


class BoundedKey(NamedTuple):
    group_key: ConfigKey[int]
    broker_key: ConfigKey[int]
    low_key: ConfigKey[int]
    high_key: ConfigKey[int]

    @property
    def broker_keys(self) -> tuple[ConfigKey[Any], ...]:
        return self.broker_key, self.low_key, self.high_key

    def value(self, group: ConfigValues, broker: ConfigValues) -> int:
        """A group's value from before the bounds were narrowed is clamped to them."""
        return max(broker[self.low_key], min(group[self.group_key], broker[self.high_key]))

    def validate(self, group: ConfigValues, broker: ConfigValues) -> None:
        self._validate(self.group_key, group[self.group_key], broker)

    def validate_broker(self, broker: ConfigValues) -> None:
        self._validate(self.broker_key, broker[self.broker_key], broker)

    def _validate(self, key: ConfigKey[int], value: int, broker: ConfigValues) -> None:
        if value < broker[self.low_key]:
            raise ApiError(
                ErrorCode.invalid_config,
                f"{key.name} must be greater than or equal to {self.low_key.name}",
            )
        if value > broker[self.high_key]:
            raise ApiError(
                ErrorCode.invalid_config,
                f"{key.name} must be less than or equal to {self.high_key.name}",
            )


def bounded_key(
    name: str,
    value: Limit,
    doc: str,
    *,
    low: Limit,
    high: Limit,
    dynamic: bool = False,
) -> BoundedKey:
    """`name` is the group's key."""
    kind, _, rest = name.partition(".")
    broker_name = f"group.{name}"

    def broker_key(key_name: str, limit: Limit, text: str, *, alterable: bool) -> ConfigKey[int]:
        validator = between(limit.least, limit.most)
        return int_key(key_name, limit.default, text, validator=validator, dynamic=alterable)

    return BoundedKey(
        int_key(
            name,
            value.default,
            doc,
            validator=at_least(value.least),
            synonym=broker_name,
        ),
        broker_key(broker_name, value, doc, alterable=dynamic),
        broker_key(f"group.{kind}.min.{rest}", low, f"Minimum of {name}.", alterable=False),
        broker_key(f"group.{kind}.max.{rest}", high, f"Maximum of {name}.", alterable=False),
    )


def broker_keys_of(keys: Iterable[BoundedKey]) -> tuple[ConfigKey[Any], ...]:
    return tuple(broker_key for key in keys for broker_key in key.broker_keys)


def broker_key_of(key: ConfigKey[T]) -> ConfigKey[T]:
    """The broker key that is the default of a group's unbounded key."""
    assert key.synonym is not None
    return ConfigKey(key.synonym, key.type, key.default, key.doc, validator=key.validator)
