from ottla.cli.copy_progress import bytes_left
from ottla.cli.output import format_size
from ottla.cli.replica_plan import Move
from ottla.protocol.topics import TopicPartition

ORDERS = TopicPartition("orders", 0)


def test_what_new_replicas_lack_of_the_fullest_old_one() -> None:
    move = Move(ORDERS, (1, 2), (2, 3, 4))
    sizes = {(1, ORDERS): 90, (2, ORDERS): 100, (3, ORDERS): 40}
    assert bytes_left(sizes, move) == 60 + 100


def test_who_has_more_than_the_old_ones_lacks_nothing() -> None:
    sizes = {(1, ORDERS): 90, (2, ORDERS): 100}
    assert bytes_left(sizes, Move(ORDERS, (1,), (1, 2))) == 0


def test_fewer_replicas_are_no_copies() -> None:
    assert bytes_left({(1, ORDERS): 90}, Move(ORDERS, (1, 2), (1,))) == 0


def test_sizes_have_units() -> None:
    sizes = [0, 999, 1000, 1_500_000, 12_300_000_000, 5 * 10**15]
    assert list(map(format_size, sizes)) == ["0 B", "999 B", "1 KB", "1.5 MB", "12.3 GB", "5000 TB"]
