"""Certificates for a cluster of one's own: an authority that signs one certificate and is then forgotten.

Whoever holds the certificate and its key may be scheduler, worker and client, and a client may run code on a cluster:
the folder is to be kept like a password. Another cluster is given other certificates.
"""

import datetime
import os
import subprocess
from pathlib import Path
from typing import Any

from scalemani.errors import ConfigError, StoreError, installing, refuse_url
from scalemani.sources.base import optional_module
from scalemani.store.locks import NO_LINK

CERTIFICATE_FILES = {"tls_ca_file": "ca.pem", "tls_client_cert": "certificate.pem", "tls_client_key": "key.pem"}
CLOCK_SKEW = datetime.timedelta(hours=1)
TEMPORARY_DAYS = 365  # longer than any run
# The package cryptography would be 15 MB of every installation; this command is on nearly every machine.
SELF_SIGNED = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "-", "-out", "-", "-batch"]
SELF_SIGNED += ["-subj", "/CN=scalemani", "-days", str(TEMPORARY_DAYS)]


def make_certificates(folder: Path, days: int = 365) -> list[Path]:
    """Write ca.pem, certificate.pem and key.pem into a folder, readable by their owner alone; return their paths.

    Raises ConfigError without the extra `tls`, and StoreError where one of them is there already.
    """
    if days < 1:
        raise ConfigError(f"days must be at least 1, got {days}")
    refuse_url(folder, "the place of certificates")
    contents = dict(zip(CERTIFICATE_FILES.values(), new_certificates(days), strict=True))
    there = [name for name in contents if (folder / name).exists()]
    if there:
        raise StoreError(f"{folder} holds {', '.join(there)} already, nothing is overwritten: choose another folder")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content in contents.items():
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    return [folder / name for name in contents]


def new_certificates(days: int) -> tuple[bytes, bytes, bytes]:
    """Return an authority, a certificate that it has signed and the key of that, as PEM."""
    optional_module("cryptography", "tls")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = certificate("scalemani authority", authority_key.public_key(), authority_key, None, days)
    member = certificate("scalemani cluster", key.public_key(), authority_key, authority.subject, days)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return authority.public_bytes(pem), member.public_bytes(pem), private


def self_signed() -> str:
    """Return a key and a certificate signed with it, as PEM, by the command openssl."""
    try:
        return subprocess.run(SELF_SIGNED, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(
            "scheduler='processes' makes certificates, so that no other user of this machine runs code through it: "
            f"install the command openssl or the package cryptography ({installing('tls')}), or use threads"
        ) from error


def certificate(name: str, public_key: Any, signing_key: Any, issuer: Any, days: int) -> Any:
    """Return a certificate signed with a key.

    Parameters
    ----------
    name : whose it is
    public_key : that it is for
    signing_key : of the authority
    issuer : the name of the authority; None for the certificate of the authority itself
    days : for which it is valid
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    subject, now = x509.Name.from_rfc4514_string(f"CN={name}"), datetime.datetime.now(datetime.UTC)
    uses = dict.fromkeys(("content_commitment", "data_encipherment", "encipher_only", "decipher_only"), False)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=0 if issuer is None else None), True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                key_encipherment=False,
                key_agreement=issuer is not None,
                key_cert_sign=issuer is None,
                crl_sign=issuer is None,
                **uses,
            ),
            True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), False)
        .sign(signing_key, hashes.SHA256())
    )


def certificate_paths(folder: str | Path) -> dict[str, str]:
    """Return authority, certificate and key in a folder by Dask's names; refuse a key that others can read."""
    files = {role: Path(folder) / name for role, name in CERTIFICATE_FILES.items()}
    missing = [str(path) for path in files.values() if not path.is_file()]
    if missing:
        raise ConfigError(f"no {', '.join(missing)}: make certificates with 'scalemani tls {folder}'")
    if files["tls_client_key"].stat().st_mode & 0o077:
        raise ConfigError(f"{files['tls_client_key']} can be read by others: chmod 600 it")
    return {role: str(path) for role, path in files.items()}
