"""Certificates and tokens of a small authority of our own."""

import ipaddress
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
FAR_OFF = datetime(2126, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Pair:
    """A key and a certificate, as files."""

    key: Path
    certificate: Path


class Authority:
    """Signs certificates and tokens; its files lie in a folder of the test."""

    def __init__(self, folder: Path, name: str = "pointsman test authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        constraint = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._builder(self._name, self._key.public_key()).add_extension(constraint, critical=True)
        self.certificate = folder / "authority.pem"
        self.certificate.write_bytes(
            certificate.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        self.public_key = folder / "tokens.pem"
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        self.public_key.write_bytes(self._key.public_key().public_bytes(serialization.Encoding.PEM, form))

    def issue(self, name: str, uri: str = "", common_name: str = "") -> Pair:
        """A certificate for a common name (if none is given: the name), and for a SPIFFE id if one is given."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        if uri:
            alternatives.append(x509.UniformResourceIdentifier(uri))
        builder = self._builder(_name(common_name or name), key.public_key())
        certificate = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        pair = Pair(self._folder / f"{name}.key.pem", self._folder / f"{name}.pem")
        form = serialization.PrivateFormat.PKCS8
        pair.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
        signed = certificate.sign(self._key, hashes.SHA256())
        pair.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        return pair

    def token(self, claims: dict[str, Any]) -> str:
        """A signed token; the claims that every token has are added."""
        form = serialization.PrivateFormat.PKCS8
        key = self._key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        whole = {"aud": "pointsman", "exp": int(FAR_OFF.timestamp()), **claims}
        return jwt.encode(whole, key, algorithm="ES256")

    def _builder(self, subject: x509.Name, key: Any) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(LONG_AGO - timedelta(days=1))
            .not_valid_after(FAR_OFF)
        )


def serial_of(certificate: Path) -> int:
    """The serial number of the first certificate in a file."""
    return x509.load_pem_x509_certificate(certificate.read_bytes()).serial_number


def serial_shown(address: str, authority: Path, own: Pair | None = None) -> int:
    """The serial number of the certificate that a server shows in a new handshake."""
    context = ssl.create_default_context(cafile=str(authority))
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), 5) as connection,
        context.wrap_socket(connection, server_hostname=host) as encrypted,
    ):
        shown = encrypted.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown).serial_number


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
