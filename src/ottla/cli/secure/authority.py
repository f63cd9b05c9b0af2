"""A certificate authority of one's own: P-256 keys, and certificates for nodes and clients.

Keys and certificates are PEM. Whoever has the authority's key can make themselves a node of the
cluster, so it belongs on no node.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS: Final = 3_650
CERTIFICATE_DAYS: Final = 825
NODES_UNIT: Final = "ottla-nodes"
CLIENTS_UNIT: Final = "ottla-clients"

_BACKDATED: Final = dt.timedelta(hours=1)  # Clocks differ.


@dataclass(frozen=True, slots=True)
class Identity:
    certificate: bytes
    key: bytes = field(repr=False)

    @property
    def keystore(self) -> bytes:
        """Both, as `ssl.keystore.location` wants them."""
        return self.key + self.certificate


def new_authority(name: str, now: dt.datetime) -> Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        _builder(subject, subject, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _identity(builder.sign(key, hashes.SHA256()), key)


def issue(
    authority: Identity, name: str, unit: str, hosts: Sequence[str], now: dt.datetime
) -> Identity:
    """A certificate for one node, under all its names, or for a client, without any."""
    signer = x509.load_pem_x509_certificate(authority.certificate)
    signing_key = serialization.load_pem_private_key(authority.key, password=None)
    assert isinstance(signing_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if hosts:
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
    builder = (
        _builder(subject, signer.subject, key.public_key(), now, CERTIFICATE_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    if hosts:
        names = x509.SubjectAlternativeName([_alternative(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return _identity(builder.sign(signing_key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: dt.datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + dt.timedelta(days=days))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _identity(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Identity:
    return Identity(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
