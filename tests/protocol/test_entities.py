"""`entity` makes the same classes as `dataclass`."""

import dataclasses
from dataclasses import dataclass, field

import pytest

from ottla.protocol.entities import entity


@entity
class Point:
    x: int = field(metadata={"kafka_type": "int32"})
    y: int = field(metadata={"kafka_type": "int32"}, default=2)


@entity
class Empty: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    x: int = field(metadata={"kafka_type": "int32"})
    y: int = field(metadata={"kafka_type": "int32"}, default=2)


def test_it_is_compared_hashed_and_shown_by_its_fields() -> None:
    assert Point(x=1) == Point(x=1, y=2) != Point(x=1, y=3)
    assert len({Point(x=1), Point(x=1), Point(x=2)}) == 2
    assert repr(Point(x=1)) == repr(Usual(x=1)).replace("Usual", "Point")
    usual: object = Usual(x=1)
    assert Point(x=1) != usual
    assert Empty() == Empty()
    assert repr(Empty()) == "Empty()"


def test_it_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(x=1).x = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[call-arg]
    assert not hasattr(Point(x=1), "__dict__")


def test_the_functions_of_dataclasses_know_it() -> None:
    assert dataclasses.replace(Point(x=1), y=5) == Point(x=1, y=5)
    assert dataclasses.asdict(Point(x=1)) == {"x": 1, "y": 2}
    assert dataclasses.fields(Point)[0].metadata == {"kafka_type": "int32"}
