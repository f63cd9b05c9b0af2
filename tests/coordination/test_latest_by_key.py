from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.latest_by_key import KEYS_MAX, PORTION_RECORDS, LatestByKey
from ottla.records.builder import Record
from ottla.runtime.machine_batches import StoredBatch

keys = st.sampled_from([b"a", b"b", b"c", b"d"])


def drained(latest: LatestByKey) -> list[Record]:
    return [record for portion in latest.drain() for record in portion]


@given(st.lists(st.lists(keys, max_size=5), max_size=10))
def test_the_last_record_of_each_key_in_the_order_of_the_log(batches: list[list[bytes]]) -> None:
    latest = LatestByKey()
    records: list[Record] = []
    for batch in batches:
        offset = len(records)
        added = [Record(offset + index, 5, key, b"v") for index, key in enumerate(batch)]
        latest.add(added)
        records += added
    last = {record.key: record.offset for record in records}
    assert drained(latest) == [record for record in records if last[record.key] == record.offset]
    assert drained(latest) == []


def test_portions_are_small() -> None:
    latest = LatestByKey()
    latest.add([Record(index, 5, b"%d" % index) for index in range(PORTION_RECORDS + 1)])
    assert [len(portion) for portion in latest.drain()] == [PORTION_RECORDS, 1]


def test_it_is_full_when_it_has_so_many_keys() -> None:
    latest = LatestByKey()
    latest.add([Record(index, 5, b"%d" % index) for index in range(KEYS_MAX - 1)])
    assert not latest.is_full
    latest.add([Record(0, 5, b"again")])
    assert latest.is_full


def test_records_of_transactions_are_not_its_business() -> None:
    assert LatestByKey.takes(StoredBatch([]))
    assert not LatestByKey.takes(StoredBatch([], attributes=0x10))
    assert not LatestByKey.takes(StoredBatch([], attributes=0x30))
