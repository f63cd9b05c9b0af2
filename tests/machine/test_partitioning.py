import pytest

from ottla.machine.partitioning import partition_for


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("", 0),
        ("a", 47),
        ("test-group", 12),
        ("hello", 22),  # 99162322
        ("grün", 49),  # 3185949
        ("\U0001f600", 49),  # Two UTF-16 units: 1772899
        ("polygenelubricants", 0),  # Its hash code is the minimum integer.
    ],
)
def test_a_key_lives_where_its_hash_code_says(key: str, partition: int) -> None:
    assert partition_for(key, 50) == partition
