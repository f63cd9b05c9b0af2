"""What `ottla gateway` refuses before it starts."""

from pathlib import Path

import pytest

from ottla.cli.errors import UsageError
from ottla.cli.gateway import Door


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "gateway.example.com"])
def test_beyond_loopback_it_needs_a_lock(host: str) -> None:
    certificate = Path(__file__)  # Any file; it is read later.
    for door in (
        Door(host=host),
        Door(host=host, auth="basic"),
        Door(host=host, tls_certificate=certificate),
    ):
        with pytest.raises(UsageError, match="--insecure"):
            door.validate()
    Door(host=host, auth="basic", tls_certificate=certificate).validate()
    Door(host=host, insecure=True).validate()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_on_loopback_it_does_not(host: str) -> None:
    Door(host=host).validate()


def test_files_that_are_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--tls-certificate"):
        Door(tls_certificate=tmp_path / "none.pem").validate()
    with pytest.raises(UsageError, match="goes with"):
        Door(tls_key=tmp_path / "none.pem").validate()
