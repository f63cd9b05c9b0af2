from ottla.node.descriptors import OTHERS_COUNT, share_descriptors

UNLIMITED = 2**31 - 1


def test_a_high_limit_leaves_the_configuration_as_it_is() -> None:
    assert share_descriptors(20_000, log_files=2000, connections=500) == (2000, 500)


def test_connections_get_what_the_files_leave() -> None:
    shares = share_descriptors(20_000, log_files=2000, connections=UNLIMITED)
    assert shares == (2000, 18_000 - OTHERS_COUNT)


def test_a_low_limit_is_shared() -> None:
    log_files, connections = share_descriptors(1024, log_files=2000, connections=UNLIMITED)
    assert log_files == connections
    assert log_files + connections + OTHERS_COUNT == 1024


def test_there_is_always_something_for_both() -> None:
    assert min(share_descriptors(20, log_files=2000, connections=UNLIMITED)) > 0
