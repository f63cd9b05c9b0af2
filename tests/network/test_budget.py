from ottla.network.budget import MemoryBudget


class Debtor:
    def __init__(self) -> None:
        self.woken = 0

    def on_memory_free(self) -> None:
        self.woken += 1


def test_reading_stops_above_the_limit_and_resumes_below_three_quarters() -> None:
    changes: list[bool] = []
    budget = MemoryBudget(1000, changes.append)
    waiting = Debtor()
    budget.charge(1000)
    assert budget.may_receive(waiting, mid_request=False)
    budget.charge(1)
    assert not budget.may_receive(waiting, mid_request=False)
    budget.charge(-200)
    assert (waiting.woken, changes) == (0, [True])
    budget.charge(-60)
    assert (waiting.woken, changes) == (1, [True, False])
    assert budget.may_receive(waiting, mid_request=False)


def test_one_at_a_time_may_finish_its_request() -> None:
    budget = MemoryBudget(1000, lambda exceeded: None)
    first, second = Debtor(), Debtor()
    budget.charge(2000)
    assert budget.may_receive(first, mid_request=True)
    assert not budget.may_receive(second, mid_request=True)
    assert budget.may_receive(first, mid_request=True)
    budget.release(second)
    assert second.woken == 0
    budget.release(first)
    assert second.woken == 1
    assert budget.may_receive(second, mid_request=True)
    assert not budget.may_receive(first, mid_request=True)


def test_a_session_that_ended_is_not_woken() -> None:
    budget = MemoryBudget(1000, lambda exceeded: None)
    holder, waiting = Debtor(), Debtor()
    budget.charge(2000)
    budget.may_receive(holder, mid_request=True)
    budget.may_receive(waiting, mid_request=True)
    budget.forget(waiting)
    budget.forget(holder)
    budget.charge(-2000)
    assert (holder.woken, waiting.woken) == (0, 0)


def test_no_limit() -> None:
    budget = MemoryBudget(-1, lambda exceeded: None)
    budget.charge(1 << 50)
    assert budget.may_receive(Debtor(), mid_request=False)
