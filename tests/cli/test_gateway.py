"""What `ottla gateway` refuses before it starts, and which cluster it serves."""

from pathlib import Path

import pytest

from ottla.cli.errors import UsageError
from ottla.cli.gateway import DEFAULT_SERVER, Door, cluster_of
from ottla.client.profiles import save_profiles


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "gateway.example.com"])
def test_beyond_loopback_it_needs_a_lock(host: str, tmp_path: Path) -> None:
    certificate = tmp_path / "any.pem"  # The file is read later.
    certificate.touch(0o600)
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
    exposed = tmp_path / "exposed"
    exposed.touch()
    exposed.chmod(0o644)
    with pytest.raises(UsageError, match=r"--tls-key .* others can read it"):
        Door(tls_certificate=exposed).validate()
    with pytest.raises(UsageError, match=r"--sqs-users .* others can read it"):
        Door(sqs_users=exposed, auth="basic").validate()
    with pytest.raises(UsageError, match="goes with"):
        Door(tls_key=tmp_path / "none.pem").validate()


def test_the_profile_in_use_names_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("OTTLA_PROFILE", raising=False)
    assert cluster_of("", None) == (DEFAULT_SERVER, {})
    profile = {"bootstrap.servers": "one:9092", "sasl.username": "anna"}
    save_profiles("home", {"home": profile})
    assert cluster_of("", None) == ("one:9092", profile)
    assert cluster_of("one:9092", None) == ("one:9092", profile)
    assert cluster_of("two:9092", None) == ("two:9092", {}), "anna's login is for another cluster"
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=three:9092\n")
    assert cluster_of("", file) == ("three:9092", {"bootstrap.servers": "three:9092"})
