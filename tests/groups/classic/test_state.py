from ottla.groups.classic.state import ClassicState, can_rebalance, is_legal


def test_the_legal_transitions() -> None:
    legal = {
        (before.value, after.value)
        for before in ClassicState
        for after in ClassicState
        if is_legal(before, after)
    }

    assert legal == {
        ("Empty", "PreparingRebalance"),
        ("Empty", "Dead"),
        ("PreparingRebalance", "CompletingRebalance"),
        ("PreparingRebalance", "Empty"),
        ("PreparingRebalance", "Dead"),
        ("CompletingRebalance", "Stable"),
        ("CompletingRebalance", "PreparingRebalance"),
        ("CompletingRebalance", "Dead"),
        ("Stable", "PreparingRebalance"),
        ("Stable", "Dead"),
    }


def test_a_group_that_rebalances_already_cannot_begin_again() -> None:
    assert [state for state in ClassicState if can_rebalance(state)] == [
        ClassicState.EMPTY,
        ClassicState.COMPLETING_REBALANCE,
        ClassicState.STABLE,
    ]
