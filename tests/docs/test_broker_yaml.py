"""config/broker.yaml: its keys exist, and what is commented out is the default."""

import re
from pathlib import Path

import pytest
import yaml

from ottla.node.config import BROKER_SCHEMA

FILE = Path(__file__).parents[2] / "config" / "broker.yaml"
# Commented out, but not defaults: the user's own addresses.
EXAMPLES = {"advertised.listeners", "controller.quorum.bootstrap.servers"}

DEFAULTS = dict(re.findall(r"^# ([a-z][a-z.]+): (\S+)$", FILE.read_text(), re.MULTILINE))


def test_the_file_is_taken() -> None:
    assert BROKER_SCHEMA.parse(yaml.safe_load(FILE.read_text()))


@pytest.mark.parametrize("name", sorted(DEFAULTS.keys() - EXAMPLES))
def test_what_is_commented_out_is_the_default(name: str) -> None:
    key = BROKER_SCHEMA[name]
    assert key.parse(DEFAULTS[name]) == key.default
