"""States of groups as commands show them: `PreparingRebalance` is `preparing_rebalance`."""

import re

_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


def state_name(kafka_name: str) -> str:
    return _WORD_START.sub("_", kafka_name).lower()


def state_filter(name: str) -> str:
    """As a broker knows it, which does not look at the case."""
    return name.replace("_", "")
