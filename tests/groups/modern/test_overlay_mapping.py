"""An overlay behaves like a dict, and the mapping below it does not change."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.groups.modern.overlay_mapping import Overlay

KEYS = st.integers(0, 7)
VALUES = st.none() | st.integers(0, 3)


class OverlayModel(RuleBasedStateMachine):
    @initialize(below=st.dictionaries(KEYS, VALUES))
    def start(self, below: dict[int, int | None]) -> None:
        self.below = below
        self.before = dict(below)
        self.expected = dict(below)
        self.overlay = Overlay(below)

    @rule(key=KEYS, value=VALUES)
    def put(self, key: int, value: int | None) -> None:
        self.overlay[key] = value
        self.expected[key] = value

    @rule(key=KEYS)
    def remove(self, key: int) -> None:
        assert self.overlay.pop(key, 9) == self.expected.pop(key, 9)

    @rule(key=KEYS)
    def look(self, key: int) -> None:
        assert (key in self.overlay) == (key in self.expected)
        assert self.overlay.get(key, 9) == self.expected.get(key, 9)

    @invariant()
    def it_holds_what_a_dict_holds(self) -> None:
        if hasattr(self, "overlay"):
            assert dict(self.overlay) == self.expected
            assert len(self.overlay) == len(self.expected)
            assert self.below == self.before


TestOverlay = OverlayModel.TestCase
