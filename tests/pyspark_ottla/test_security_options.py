from pathlib import Path

import pytest
from tests.client.wire.tls_proxy import make_certificate

from ottla.client.profiles import save_profiles
from ottla.client.wire.security import PLAINTEXT, Sasl, Security
from pyspark_ottla.options import OptionError, OptionValues
from pyspark_ottla.security_options import NAMES, default_servers, parse_security

JAAS = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required"
    r' username="anna" password="a\"b c";'
)


SERVERS = "broker.example.com:9092"


def parse(**options: str) -> Security:
    named = {f"kafka.{name.replace('_', '.')}": value for name, value in options.items()}
    return parse_security(OptionValues(named, NAMES), SERVERS)


def test_none_is_plaintext() -> None:
    assert parse() == PLAINTEXT
    assert parse(security_protocol="PLAINTEXT") == PLAINTEXT


def test_sasl_as_javas_client_writes_it() -> None:
    security = parse(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=JAAS
    )
    assert security == Security(sasl=Sasl("SCRAM-SHA-512", "anna", 'a"b c'))


def test_sasl_by_name_and_password() -> None:
    security = parse(
        security_protocol="sasl_ssl",
        sasl_mechanism="plain",
        sasl_username="anna",
        sasl_password="lamp",
    )
    assert security.sasl == Sasl("PLAIN", "anna", "lamp")
    assert security.tls is not None
    assert security.tls.checks_host_name


def test_certificates_from_files_and_as_text(tmp_path: Path) -> None:
    path = make_certificate(tmp_path, "client")
    stores = parse(
        security_protocol="SSL",
        ssl_truststore_type="PEM",
        ssl_truststore_location=str(path),
        ssl_keystore_type="PEM",
        ssl_keystore_location=str(path),
        ssl_endpoint_identification_algorithm="",
    ).tls
    assert stores is not None
    assert stores.authorities == stores.certificates == path.read_text()
    assert not stores.checks_host_name
    certificate, key = (path.with_suffix(end).read_text() for end in (".crt", ".key"))
    texts = parse(
        security_protocol="SSL",
        ssl_truststore_certificates=certificate,
        ssl_keystore_certificate_chain=certificate,
        ssl_keystore_key=key,
    ).tls
    assert texts is not None
    assert (texts.authorities, texts.certificates, texts.key) == (certificate, certificate, key)
    path.chmod(0o644)
    with pytest.raises(OptionError, match="others can read it"):
        parse(security_protocol="SSL", ssl_keystore_type="PEM", ssl_keystore_location=str(path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"security_protocol": "TLS"}, "not one of plaintext, ssl, sasl_plaintext, sasl_ssl"),
        ({"sasl_username": "anna"}, "no meaning with kafka.security.protocol=PLAINTEXT"),
        ({"security_protocol": "SSL", "sasl_mechanism": "PLAIN"}, "no meaning with"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "mechanism is GSSAPI; there are PLAIN, SCRAM"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"},
            "SASL needs",
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_jaas_config": "x"},
            'has no username="..."',
        ),
        ({"security_protocol": "SSL", "ssl_truststore_location": "/x.jks"}, "only PEM can be read"),
        (
            {
                "security_protocol": "SSL",
                "ssl_truststore_location": "/nowhere.pem",
                "ssl_truststore_type": "PEM",
            },
            "No such file",
        ),
        ({"security_protocol": "SSL", "ssl_truststore_certificates": "x"}, "are not PEM"),
        ({"security_protocol": "SSL", "ssl_keystore_key": "x"}, "go together"),
        (
            {"security_protocol": "SSL", "ssl_endpoint_identification_algorithm": "no"},
            "not one of https",
        ),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as raised:
        parse(**options)
    assert message in str(raised.value)


def write_profile(monkeypatch: pytest.MonkeyPatch, directory: Path, servers: str) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(directory))
    monkeypatch.delenv("OTTLA_COMMAND_CONFIG", raising=False)
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    user = {"sasl.username": "anna", "sasl.password": "lamp"}
    save_profiles("prod", {"prod": {"bootstrap.servers": servers, **login, **user}})


def test_the_profile_in_use_logs_in_at_its_own_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_profile(monkeypatch, tmp_path, SERVERS)
    assert parse() == Security(sasl=Sasl("PLAIN", "anna", "lamp"))
    assert default_servers() == SERVERS
    assert parse(security_protocol="PLAINTEXT") == PLAINTEXT
    write_profile(monkeypatch, tmp_path, "other.example.com:9092")
    assert parse() == PLAINTEXT


def test_a_file_with_settings_of_clients_goes_before_the_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_profile(monkeypatch, tmp_path, SERVERS)
    path = tmp_path / "ben.properties"
    path.touch(0o600)
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        'sasl.jaas.config=PlainLoginModule required username="ben" password="desk";\n'
    )
    monkeypatch.setenv("OTTLA_COMMAND_CONFIG", str(path))
    assert parse() == Security(sasl=Sasl("PLAIN", "ben", "desk"))
    path.chmod(0o644)
    with pytest.raises(OptionError, match="others can read it"):
        parse()
