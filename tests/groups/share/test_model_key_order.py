"""A share-partition that hands out the records of a key one at a time and in order.

Everything that holds for parked records holds here as well. In addition, no record is handed out
while an earlier one of its key is unfinished, and other keys are not affected.
"""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.groups.share.test_model_parking import LIMIT, ParkingModel

KEYS = st.sampled_from([None, 1, 2, 3])


class KeyOrderModel(ParkingModel):
    key_order = True

    def keys_of(self, count: int, data: st.DataObject) -> list[int | None]:
        return data.draw(st.lists(KEYS, min_size=count, max_size=count))

    def check_order(self, acquired: Iterable[int]) -> None:
        if not self.leader.partition.rules.key_order:
            return
        keys = self.leader.keys()
        for offset in acquired:
            if offset in keys:
                assert not [each for each in self.unfinished(keys[offset]) if each < offset]

    def unfinished(self, key: int) -> list[int]:
        return [
            offset
            for offset, number in self.leader.keys().items()
            if number == key and offset not in self.done and not self.is_given_up(offset)
        ]

    def is_given_up(self, offset: int) -> bool:
        """A record at the limit may become a dead letter in any fetch that meets it."""
        return offset not in self.held and self.counts.get(offset, 0) >= LIMIT

    @rule(member=st.sampled_from(["a", "b"]))
    def every_free_key_is_had(self, member: str) -> None:
        """No key blocks another one while there is room for locks."""
        leader = self.leader
        if not leader.partition.rules.key_order or self.was_set_back:
            return
        met = ""
        # One fetch may only give up records, and the next one return those behind them.
        while self._fetch(member, 10, None, 0) or met != repr([*leader.partition.runs()]):
            met = repr([*leader.partition.runs()])
        if leader.partition.acquired_count + leader.partition.archiving_count > 10:
            return
        keys = leader.keys()
        for key in set(keys.values()):
            # One at the limit whose hold has outlived its leader blocks its key until it ends.
            waiting = [each for each in keys if keys[each] == key and self.is_before_its_time(each)]
            line = sorted({*self.unfinished(key), *waiting} - self.done)
            if line and line[0] not in waiting:
                assert line[0] in self.held

    def is_before_its_time(self, offset: int) -> bool:
        return self.not_before.get(offset, 0) > self.leader.now_ms

    @rule(key_order=st.booleans())
    def switch(self, key_order: bool) -> None:
        leader = self.leader
        leader.rules = leader.partition.rules = replace(leader.rules, key_order=key_order)


TestKeyOrder = KeyOrderModel.TestCase
TestKeyOrder.settings = settings(max_examples=120, stateful_step_count=50)
