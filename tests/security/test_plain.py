import pytest

from ottla.security.errors import AuthenticationFailed
from ottla.security.plain import PlainLogin, parse_plain, plain_message


def test_a_login_is_read_as_it_was_written() -> None:
    assert parse_plain(plain_message("alice", "pä:ss")) == PlainLogin("alice", "pä:ss")
    assert parse_plain(b"alice\0alice\0secret") == PlainLogin("alice", "secret")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff",
        b"alice\0secret",
        b"\0\0secret",
        b"\0alice\0",
        b"bob\0alice\0secret",
        b"\0a\0b\0c",
    ],
)
def test_what_is_no_login_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        parse_plain(message)


def test_a_login_does_not_show_its_password() -> None:
    assert "secret" not in repr(parse_plain(b"\0alice\0secret"))
