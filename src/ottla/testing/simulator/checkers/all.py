"""Every checker, new for one run."""

from ottla.testing.simulator.checkers.acknowledged_kept import AcknowledgedKept
from ottla.testing.simulator.checkers.checker import Checker
from ottla.testing.simulator.checkers.no_duplicates import NoDuplicates
from ottla.testing.simulator.checkers.order import Order
from ottla.testing.simulator.checkers.same_for_all import SameForAll


def all_checkers() -> list[Checker]:
    return [AcknowledgedKept(), NoDuplicates(), Order(), SameForAll()]
