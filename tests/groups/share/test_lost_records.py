from ottla.groups.share.delivery import DeliveryState, StateBatch
from ottla.groups.share.lost_records import Remaining, without_lost
from ottla.groups.share.parked import ParkedChange, ParkedRecord
from ottla.groups.share.partition import Change

AVAILABLE, ACKNOWLEDGED = DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED
BATCHES = (StateBatch(2, 5, AVAILABLE, 1), StateBatch(6, 9, ACKNOWLEDGED, 1))


def page(*offsets: int) -> ParkedChange:
    return ParkedChange.of(ParkedRecord(offset, 0, 1) for offset in offsets)


def test_what_is_in_the_log_stays_as_it_is() -> None:
    pages = (page(0, 5), page(9))
    for log_end_offset in (10, 11):
        assert without_lost(1, BATCHES, pages, log_end_offset) == Remaining(
            BATCHES, pages, Change(1, is_written=False)
        )


def test_lost_records_leave_no_state() -> None:
    remaining = without_lost(1, BATCHES, (page(0, 5), page(9)), 4)
    assert remaining == Remaining(
        (StateBatch(2, 3, AVAILABLE, 1),),
        (page(0), page()),
        Change(
            1,
            (StateBatch(4, 9, AVAILABLE, 0),),
            parked=ParkedChange.of((), ((4, 2**63 - 1),)),
            lost_count=2,
        ),
    )


def test_lost_records_are_reset_once() -> None:
    batches = (StateBatch(2, 3, AVAILABLE, 1), StateBatch(4, 9, AVAILABLE, 0))
    assert without_lost(1, batches, (), 4) == Remaining(
        batches[:1], (), Change(1, is_written=False)
    )


def test_offsets_before_the_start_stay_done() -> None:
    """Somebody may have set the start to where the log will be."""
    assert without_lost(6, BATCHES[1:], (), 4) == Remaining(
        (), (), Change(6, (StateBatch(6, 9, AVAILABLE, 0),))
    )
