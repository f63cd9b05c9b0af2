"""`ottla users add --to-file`: users of an `initial.users.file`."""

import stat
from pathlib import Path

import pytest

from ottla.cli.errors import CommandError
from ottla.cli.users.add import add
from ottla.node.users_file import read_users
from ottla.security.scram import ScramMechanism, new_credential


@pytest.fixture
def password(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text("secret\n")
    file.chmod(0o600)
    return file


def test_a_user_is_added_to_a_new_file_and_to_one_that_has_others(
    tmp_path: Path, password: Path
) -> None:
    users = tmp_path / "users.json"
    add("ottla-node", password_file=password, to_file=users)
    assert stat.S_IMODE(users.stat().st_mode) == 0o600
    users.chmod(0o640)
    add("alice", password_file=password, to_file=users, iterations=4096)
    assert stat.S_IMODE(users.stat().st_mode) == 0o640
    found = read_users(str(users))
    assert {name for name, _ in found} == {"ottla-node", "alice"}
    for (name, number), credential in found.items():
        mechanism = ScramMechanism(number)
        iterations = 4096 if name == "alice" else 8192
        assert credential == new_credential(mechanism, "secret", credential.salt, iterations)


def test_the_password_of_a_user_is_replaced(tmp_path: Path, password: Path) -> None:
    users = tmp_path / "users.json"
    add("alice", password_file=password, to_file=users)
    before = read_users(str(users))
    password.write_text("another")
    add("alice", password_file=password, to_file=users)
    after = read_users(str(users))
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())


def test_a_file_that_is_not_understood_stays_as_it_is(tmp_path: Path, password: Path) -> None:
    users = tmp_path / "users.json"
    users.write_text("not JSON")
    users.chmod(0o600)
    with pytest.raises(CommandError, match="cannot read the users"):
        add("alice", password_file=password, to_file=users)
    assert users.read_text() == "not JSON"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["password", "users.json"]
