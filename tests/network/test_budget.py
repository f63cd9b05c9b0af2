import pytest

from ottla.network.budget import SMALL_BYTES, MemoryBudget

LIMIT = 8_000_000
COMMON = 7_000_000  # Without the part reserved for other brokers.
OVERDRAFT = 1_000_000


class Debtor:
    def __init__(self, *, is_peer: bool = False) -> None:
        self.is_peer = is_peer
        self.woken = 0
        self.held = 0

    def on_memory_free(self) -> None:
        self.woken += 1

    def hold(self, budget: MemoryBudget, held: int) -> None:
        budget.charge(self, held - self.held)
        self.held = held

    def may_go_on(self, budget: MemoryBudget) -> bool:
        return budget.has_room(self, self.held)


def budget_of(limit: int = LIMIT) -> MemoryBudget:
    return MemoryBudget(limit, OVERDRAFT)


@pytest.mark.parametrize("count", [1, 3, 1_000])
def test_those_who_take_all_they_can_leave_an_equal_part(count: int) -> None:
    budget = budget_of()
    greedy = [Debtor() for _ in range(count)]
    step = 500
    growing = list(greedy)
    while growing:
        for debtor in growing:
            debtor.hold(budget, debtor.held + step)
        growing = [
            debtor for debtor in growing if debtor.may_go_on(budget) and debtor.held < COMMON
        ]
    assert budget.used <= COMMON
    modest = Debtor()
    modest.hold(budget, int(0.9 * COMMON / (count + 1)))
    assert not greedy[0].may_go_on(budget)
    modest.hold(budget, int(0.45 * COMMON / (count + 1)))
    assert modest.may_go_on(budget)


def test_who_holds_next_to_nothing_is_always_served() -> None:
    budget = budget_of()
    Debtor().hold(budget, 10 * LIMIT)
    small = Debtor()
    small.hold(budget, SMALL_BYTES)
    assert small.may_go_on(budget)
    small.hold(budget, SMALL_BYTES + 1)
    assert not small.may_go_on(budget)


def test_brokers_have_a_share_that_others_cannot_take() -> None:
    budget = budget_of()
    Debtor().hold(budget, 10 * LIMIT)
    peer, other = Debtor(is_peer=True), Debtor(is_peer=True)
    peer.hold(budget, LIMIT // 8)
    assert peer.may_go_on(budget)
    other.hold(budget, SMALL_BYTES + 1)
    assert not peer.may_go_on(budget)
    budget.wait(other, other.held, 0)
    peer.hold(budget, 0)
    assert other.woken == 1
    assert other.may_go_on(budget)


def test_who_waits_is_woken_when_as_much_as_it_holds_is_left() -> None:
    waits: list[int] = []
    budget = MemoryBudget(LIMIT, OVERDRAFT, on_wait=lambda: waits.append(1))
    holder, waiting = Debtor(), Debtor()
    holder.hold(budget, 5_000_000)
    waiting.hold(budget, 1_500_000)
    assert not waiting.may_go_on(budget)
    budget.wait(waiting, waiting.held, 0)
    budget.wait(waiting, waiting.held, 0)
    assert (budget.short, len(waits)) == (True, 1)
    holder.hold(budget, 4_500_000)
    assert waiting.woken == 0
    holder.hold(budget, 3_000_000)
    assert waiting.woken == 1
    assert waiting.may_go_on(budget)
    assert not budget.short


def test_overdrafts_are_as_large_as_one_request_and_cost_others_nothing() -> None:
    budget = budget_of()
    stuck = [Debtor() for _ in range(3)]
    for debtor in stuck:
        debtor.hold(budget, COMMON // 3)
    assert budget.overdraw(stuck[0], 700_000)
    assert not budget.overdraw(stuck[1], 400_000)
    assert budget.overdraw(stuck[2], 300_000)
    left = COMMON - 3 * (COMMON // 3)
    stuck[0].hold(budget, COMMON // 3 + 700_000)
    assert budget.used == COMMON - left + 700_000
    small = Debtor()
    small.hold(budget, 1)
    assert small.may_go_on(budget)
    budget.wait(stuck[1], stuck[1].held, 400_000)
    assert budget.short
    stuck[0].hold(budget, 0)
    budget.release(stuck[0])
    assert stuck[1].woken == 1
    assert budget.has_room(stuck[1], stuck[1].held) or budget.overdraw(stuck[1], 400_000)


def test_a_request_larger_than_all_overdrafts_gets_one_if_nobody_has() -> None:
    budget = budget_of(1_000)
    assert budget.overdraw(Debtor(), 10 * OVERDRAFT)


def test_a_session_that_ended_is_not_woken() -> None:
    budget = budget_of()
    holder, waiting = Debtor(), Debtor()
    holder.hold(budget, LIMIT)
    budget.overdraw(holder, OVERDRAFT)
    budget.wait(waiting, 10_000, 10)
    budget.forget(waiting)
    holder.hold(budget, 0)
    budget.forget(holder)
    assert (holder.woken, waiting.woken, budget.used, budget.short) == (0, 0, 0, False)


def test_receives_are_small_while_little_is_left() -> None:
    changes: list[bool] = []
    budget = MemoryBudget(LIMIT, OVERDRAFT, on_scarce=changes.append)
    holder = Debtor()
    holder.hold(budget, COMMON - LIMIT // 4)
    assert changes == []
    holder.hold(budget, COMMON - LIMIT // 4 + 1)
    holder.hold(budget, COMMON)
    assert changes == [True]
    holder.hold(budget, 0)
    assert changes == [True, False]


def test_no_limit() -> None:
    budget = budget_of(-1)
    debtor = Debtor()
    debtor.hold(budget, 1 << 50)
    assert debtor.may_go_on(budget)
