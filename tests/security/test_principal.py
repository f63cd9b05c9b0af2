import pytest

from ottla.security.principal import Principal, parse_principal, parse_super_users


def test_a_principal_is_written_as_it_is_read() -> None:
    assert parse_principal("User:CN=a,O=b") == Principal("User", "CN=a,O=b")
    assert str(Principal("User", "alice")) == "User:alice"


@pytest.mark.parametrize("text", ["", "alice", ":alice", "User:"])
def test_what_is_no_principal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="User:name"):
        parse_principal(text)


def test_super_users_are_separated_by_semicolons() -> None:
    users = parse_super_users("User:admin; User:CN=a,O=b;")
    assert users == {Principal("User", "admin"), Principal("User", "CN=a,O=b")}
