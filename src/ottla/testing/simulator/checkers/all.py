"""All checkers, created anew for each run."""

from ottla.testing.simulator.checkers.acknowledged_kept import AcknowledgedKept
from ottla.testing.simulator.checkers.checker import Checker
from ottla.testing.simulator.checkers.committed_offsets import CommittedOffsets
from ottla.testing.simulator.checkers.committed_prefix import CommittedPrefix
from ottla.testing.simulator.checkers.high_watermark import HighWatermark
from ottla.testing.simulator.checkers.log_lines import LogLines
from ottla.testing.simulator.checkers.memory import Memory
from ottla.testing.simulator.checkers.no_duplicates import NoDuplicates
from ottla.testing.simulator.checkers.one_owner import OneOwner
from ottla.testing.simulator.checkers.order import Order
from ottla.testing.simulator.checkers.queues import Queues
from ottla.testing.simulator.checkers.same_for_all import SameForAll
from ottla.testing.simulator.checkers.single_leader import SingleLeader
from ottla.testing.simulator.checkers.transactions import Transactions


def all_checkers() -> list[Checker]:
    return [
        AcknowledgedKept(),
        NoDuplicates(),
        Order(),
        SameForAll(),
        OneOwner(),
        CommittedOffsets(),
        Transactions(),
        Queues(),
        SingleLeader(),
        HighWatermark(),
        CommittedPrefix(),
        Memory(),
        LogLines(),
    ]
