"""Dramatiq with its own worker processes, on a real broker."""

import pytest
from tests.integrations.worker_tests import *  # noqa: F403

pytestmark = pytest.mark.process

WORKER = (
    *("dramatiq", "tests.integrations.dramatiq_tasks"),
    *("--processes", "1", "--threads", "2"),
)
