"""Dramatiq with its own worker processes, on a real broker."""

import pytest
from tests.integrations.processes import WORKERS
from tests.integrations.worker_tests import *  # noqa: F403

pytestmark = pytest.mark.process

WORKER = WORKERS["dramatiq"]
