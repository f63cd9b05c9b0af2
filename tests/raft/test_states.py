import re

from ottla.raft import states
from ottla.raft.states import Role, is_legal


def test_the_table_at_the_top_is_the_one_that_is_kept() -> None:
    written = set()
    before = ""
    for line in (states.__doc__ or "").splitlines():
        if state := re.match(r" {4}([A-Z]+) ", line):
            before = state[1]
        elif after := re.match(r" {8}-> ([A-Z]+)", line):
            written.add((before, after[1]))

    kept = {(role.name, next_.name) for role in Role for next_ in Role if is_legal(role, next_)}
    assert written == kept
