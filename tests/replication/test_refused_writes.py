import pytest
from tests.storage.test_producer_state import header_of

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.refused_writes import PRODUCERS_MAX, RefusedWrites

GAP = ApiError(ErrorCode.out_of_order_sequence_number)
FULL = ApiError(ErrorCode.kafka_storage_error, "the disk is full")
FEW = ApiError(ErrorCode.not_enough_replicas)


def shown(error: ApiError) -> tuple[ErrorCode, str]:
    return error.code, error.message


@pytest.mark.parametrize("reason", [FULL, FEW])
def test_what_comes_behind_a_refused_batch_is_refused_with_it(reason: ApiError) -> None:
    refused = RefusedWrites()
    assert refused.explain(header_of(sequence=5), 5, reason) == shown(reason)
    assert refused.explain(header_of(sequence=7), 5, GAP) == shown(reason)
    assert refused.explain(header_of(sequence=9), 5, reason) == shown(reason)
    assert refused.explain(header_of(sequence=9), 5, GAP) == shown(reason)


def test_a_gap_that_nothing_explains_is_told() -> None:
    refused = RefusedWrites()
    assert refused.explain(header_of(sequence=7), 5, GAP) == shown(GAP)
    refused.explain(header_of(sequence=5), 5, FULL)
    # The refused batch has arrived since.
    assert refused.explain(header_of(sequence=9), 7, GAP) == shown(GAP)
    assert refused.explain(header_of(sequence=7, epoch=9), 5, GAP) == shown(GAP)
    assert refused.explain(header_of(sequence=7)._replace(producer_id=99), 5, GAP) == shown(GAP)


def test_other_reasons_explain_nothing() -> None:
    refused = RefusedWrites()
    fenced = ApiError(ErrorCode.invalid_producer_epoch)
    assert refused.explain(header_of(sequence=5), 5, fenced) == shown(fenced)
    assert refused.explain(header_of(sequence=7), 5, GAP) == shown(GAP)


def test_producers_that_never_come_back_take_no_room_for_good() -> None:
    refused = RefusedWrites()
    for producer_id in range(PRODUCERS_MAX + 1):
        header = header_of(sequence=5)._replace(producer_id=producer_id)
        refused.explain(header, 5, FULL)
    first, last = (
        refused.explain(header_of(sequence=7)._replace(producer_id=producer_id), 5, GAP)
        for producer_id in (0, PRODUCERS_MAX)
    )
    assert (first, last) == (shown(GAP), shown(FULL))
