"""Each class is defined with our decorator and with the standard one, and behaves the same."""

# mypy does not follow a decorator that is a parameter.
# mypy: disable-error-code="call-arg, comparison-overlap, no-untyped-call, type-var"

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import pytest

from ottla.protocol.lazy_dataclass import dataclass

Decorator = Callable[..., Callable[[type], Any]]
DECORATORS = pytest.mark.parametrize(
    "decorator", [dataclass, dataclasses.dataclass], ids=["ours", "standard"]
)


@dataclass(frozen=True, slots=True)
class Pickled:
    name: str
    size: int = 3


def test_its_parameters_can_be_asked_for() -> None:
    class Derived(Pickled):
        def __init__(self) -> None:
            super().__init__("derived")

    assert str(inspect.signature(Pickled)) == "(name: str, size: int = 3)"
    assert str(inspect.signature(Derived)) == "() -> None"


def test_a_frozen_class_is_pickled_and_copied() -> None:
    original = Pickled("orders")
    assert pickle.loads(pickle.dumps(original)) == original
    assert copy.copy(original) == copy.deepcopy(original) == original


@DECORATORS
def test_defaults_factories_and_fields_that_are_not_parameters(decorator: Decorator) -> None:
    @decorator(slots=True)
    class Tally:
        names: list[str]
        seen: dict[str, int] = field(default_factory=dict)
        total: int = field(default=7, init=False)
        late: int = field(init=False)
        limit: ClassVar[int] = 5
        strict: bool = field(default=False, kw_only=True)

    first, second = Tally(["a"]), Tally(["a"], strict=True)
    first.seen["a"] = 1
    assert (second.seen, second.total, second.strict, Tally.limit) == ({}, 7, True, 5)
    assert not hasattr(first, "late")
    for wrong in (lambda: Tally(), lambda: Tally([], {}, True), lambda: Tally([], total=1)):
        with pytest.raises(TypeError, match="__init__"):
            wrong()


@DECORATORS
def test_comparison_hash_and_text_follow_the_options_of_fields(decorator: Decorator) -> None:
    @decorator(frozen=True)
    class Login:
        user: str
        password: str = field(repr=False)
        attempts: int = field(default=0, compare=False)

    first, again = Login("ann", "x"), Login("ann", "x", 4)
    assert first == again != Login("ann", "y")
    assert hash(first) == hash(again)
    assert first != ("ann", "x", 0)
    assert repr(first).endswith("Login(user='ann', attempts=0)")


@DECORATORS
def test_what_a_class_defines_itself_is_kept(decorator: Decorator) -> None:
    @decorator(frozen=True, slots=True)
    class Name:
        text: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Name) and other.text.lower() == self.text.lower()

        def __hash__(self) -> int:
            return hash(self.text.lower())

        def __repr__(self) -> str:
            return f"<{self.text}>"

    assert {Name("A"), Name("a")} == {Name("A")}
    assert repr(Name("A")) == "<A>"


@DECORATORS
def test_a_class_that_can_be_changed_has_no_hash(decorator: Decorator) -> None:
    @decorator(slots=True)
    class Count:
        value: int = 0

    @decorator(slots=True, eq=False)
    class Identity:
        value: int = 0

    count = Count()
    count.value += 1
    assert count == Count(1)
    with pytest.raises(TypeError):
        hash(count)
    assert Identity() != Identity()
    assert hash(Identity())


@DECORATORS
def test_a_subclass_has_the_fields_of_both(decorator: Decorator) -> None:
    @decorator(frozen=True, slots=True, kw_only=True)
    class Base:
        epoch: int

    @decorator(frozen=True, slots=True, kw_only=True)
    class Leader(Base):
        leader_id: int = 1

    assert Base(epoch=3) != Leader(epoch=3)
    assert repr(Leader(epoch=3)).endswith("Leader(epoch=3, leader_id=1)")
    for leader in (Leader(epoch=3), dataclasses.replace(Leader(epoch=1), epoch=3)):
        assert leader == Leader(epoch=3, leader_id=1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            leader.epoch = 4
        with pytest.raises(dataclasses.FrozenInstanceError):
            del leader.leader_id


def test_it_inherits_from_a_class_of_the_standard_decorator() -> None:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Base:
        epoch: int

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Leader(Base):
        leader_id: int = 1

    assert Leader(epoch=3) == Leader(epoch=3, leader_id=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Leader(epoch=3).epoch = 4  # type: ignore[misc]


@DECORATORS
def test_post_init_runs_after_the_fields_are_set(decorator: Decorator) -> None:
    @decorator()
    class Doubled:
        value: int

        def __post_init__(self) -> None:
            self.value *= 2

    assert Doubled(4).value == 8
