import pytest

from pyspark_ottla.pipeline.stretches import ENDLESS, Stretch, overlap, portions, subtract


def part(start: int, end: int, partition: int = 0, source: str = "orders") -> Stretch:
    return Stretch(source, "orders", partition, start, end)


@pytest.mark.parametrize(
    ("covered", "left"),
    [
        ([], [(0, 10)]),
        ([(0, 10)], []),
        ([(3, 5)], [(0, 3), (5, 10)]),
        ([(0, 4), (8, ENDLESS)], [(4, 8)]),
        ([(2, 4), (3, 6)], [(0, 2), (6, 10)]),
        ([(10, 20)], [(0, 10)]),
    ],
)
def test_what_is_left_of_a_stretch(
    covered: list[tuple[int, int]], left: list[tuple[int, int]]
) -> None:
    there = [part(*each) for each in covered]
    assert subtract([part(0, 10)], there) == [part(*each) for each in left]
    taken = sum(each.length for each in overlap([part(0, 10)], there))
    assert taken == 10 - sum(end - start for start, end in left)


def test_other_partitions_and_sources_cover_nothing() -> None:
    others = [part(0, 10, partition=1), part(0, 10, source="more")]
    assert subtract([part(0, 10)], others) == [part(0, 10)]


@pytest.mark.parametrize("records_max", [1, 3, 7, 10, 100])
def test_portions_are_all_of_it_once_and_the_same_each_time(records_max: int) -> None:
    stretches = [part(0, 10), part(20, 25), part(0, 3, partition=1), part(5, 9, source="more")]
    found = list(portions(stretches, records_max))
    assert found == list(portions(stretches[::-1], records_max))
    assert subtract(stretches, [each for portion in found for each in portion]) == []
    assert sum(each.length for portion in found for each in portion) == 22
    for portion in found:
        assert len({each[:3] for each in portion}) == len(portion)
        # Each moves by at least one.
        assert sum(each.length for each in portion) <= records_max + 3


def test_a_stretch_is_told_with_its_last_offset() -> None:
    assert str(part(3, 10)) == "orders-0 3 to 9"
    assert str(part(3, ENDLESS)) == "orders-0 3 on"
