"""SASL PLAIN (RFC 4616): the authorization id, the user name and the password, in clear text.

Anyone who reads the connection sees the password, so use it only inside TLS.
"""

from typing import NamedTuple

from ottla.security.errors import AuthenticationFailed


class PlainLogin(NamedTuple):
    username: str
    password: str

    def __repr__(self) -> str:
        return f"PlainLogin(username={self.username!r})"


def parse_plain(message: bytes) -> PlainLogin:
    try:
        parts = message.decode().split("\0")
    except UnicodeDecodeError:
        raise AuthenticationFailed("a PLAIN message is not UTF-8") from None
    if len(parts) != 3:
        raise AuthenticationFailed("a PLAIN message has not the three parts that it must have")
    authorize, username, password = parts
    if not username or not password:
        raise AuthenticationFailed("a PLAIN message has no username, or no password")
    if authorize and authorize != username:
        raise AuthenticationFailed(f"{username!r} wants to act as somebody else")
    return PlainLogin(username, password)


def plain_message(username: str, password: str) -> bytes:
    return f"\0{username}\0{password}".encode()
