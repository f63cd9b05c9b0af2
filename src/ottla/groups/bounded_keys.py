"""Config keys that a group sets for itself, within bounds that the broker sets.

`share.session.timeout.ms` of a group is from `group.share.min.session.timeout.ms` to
`group.share.max.session.timeout.ms`; a group that does not set it has that of the broker,
`group.share.session.timeout.ms`, which is within the bounds as well.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.protocol.config import ConfigKey, ConfigType, ConfigValues, at_least, between
from ottla.protocol.errors import ApiError, ErrorCode

INT_MAX = 2**31 - 1


class Limit(NamedTuple):
    """A bound, and what it can be set to."""

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
        """What a group was given before the bounds were narrowed counts as far as they allow."""
        return max(broker[self.low_key], min(group[self.group_key], broker[self.high_key]))

    def validate(self, group: ConfigValues, broker: ConfigValues) -> None:
        self._validate(self.group_key, group[self.group_key], broker)

    def validate_broker(self, broker: ConfigValues) -> None:
        self._validate(self.broker_key, broker[self.broker_key], broker)

    def _validate(self, key: ConfigKey[int], value: int, broker: ConfigValues) -> None:
        low, high = broker[self.low_key], broker[self.high_key]
        if not low <= value <= high:
            raise ApiError(
                ErrorCode.invalid_config,
                f"{key.name} is {value}, but {self.low_key.name} and {self.high_key.name} allow"
                f" only {low} to {high}",
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
    """`name` is that of the group's key."""
    kind, _, rest = name.partition(".")
    broker_name = f"group.{name}"

    def broker_key(key_name: str, limit: Limit, text: str, *, alterable: bool) -> ConfigKey[int]:
        validator = between(limit.least, limit.most)
        return ConfigKey(
            key_name, ConfigType.INT, limit.default, text, validator=validator, dynamic=alterable
        )

    return BoundedKey(
        ConfigKey(
            name,
            ConfigType.INT,
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
