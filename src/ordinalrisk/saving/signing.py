"""Signatures of saved calibrations.

A digest without a key finds accidents: anybody who edits a file can compute the digest again. A signature
needs the private key. It is detached: ``cal.json.sig`` holds the Ed25519 signature (64 bytes) of the exact
bytes of ``cal.json``.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ordinalrisk.files.places import StoredFile, located

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

INSTALL_SIGN = 'pip install "ordinalrisk[sign]"'
_MAKE = "openssl genpkey -algorithm ed25519 -out private.pem"
_PUBLIC = "openssl pkey -in private.pem -pubout -out public.pem"
_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]+:/")  # a Path has one slash where a URL has two
_SIGNATURE_BYTES = 64
_MOST_KEY_BYTES = 1 << 14  # a key file has about 120


class SignatureError(ValueError):
    """A signature that is missing or does not match, or a key that can't be used."""


def signature_place(path: str | PathLike[str]) -> Path | StoredFile:
    """Return the place of a file's signature: the same name with ``.sig`` after it."""
    file = located(path)
    return file.with_name(f"{file.name}.sig")


def private_key(path: str | PathLike[str]) -> Ed25519PrivateKey:
    """Read the Ed25519 key that signs: PEM, without a passphrase, readable by its owner only."""
    pem = _pem(path)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if b"PUBLIC KEY" in pem:
        raise SignatureError(f"{path}: is a public key, which verifies; sign with the private key.")
    if os.name == "posix" and (mode := stat.S_IMODE(os.stat(path).st_mode)) & 0o077:
        raise SignatureError(f"{path}: other users may use this key (mode {mode:04o}); run chmod 600 {path}.")
    key = _parsed_key(pem, lambda pem: load_pem_private_key(pem, None))
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError(f"{path}: is not an Ed25519 private key without a passphrase; make one: {_MAKE}")
    return key


def public_key(path: str | PathLike[str]) -> Ed25519PublicKey:
    """Read the Ed25519 key that verifies, in PEM."""
    pem = _pem(path)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if b"PRIVATE KEY" in pem:
        raise SignatureError(
            f"{path}: is a private key, which signs; verify with its public key, which this writes: {_PUBLIC}"
        )
    key = _parsed_key(pem, load_pem_public_key)
    if not isinstance(key, Ed25519PublicKey):
        raise SignatureError(
            f"{path}: is not an Ed25519 public key; this writes the public key of a private one: {_PUBLIC}"
        )
    return key


def verified_bytes(path: str | PathLike[str], key: str | PathLike[str]) -> bytes:
    """Return the bytes of a file, read once, if the owner of the private key signed them."""
    verifier, file, place = public_key(key), located(path), signature_place(path)
    from cryptography.exceptions import InvalidSignature

    if not place.exists():
        raise SignatureError(f"{file} has no signature: there is no file {place}. Nothing was loaded.")
    content, signature = _content(file), _content(place, _SIGNATURE_BYTES + 1)
    try:
        verifier.verify(signature, content)
    except InvalidSignature:
        raise SignatureError(
            f"{file} does not match its signature {place} by the key {key}: the file or its signature was "
            "changed, or another key signed it. Nothing was loaded."
        ) from None
    return content


def _pem(path: str | PathLike[str]) -> bytes:
    """Return the content of a key file on this machine."""
    if find_spec("cryptography") is None:
        raise ImportError(f"signatures need cryptography: {INSTALL_SIGN}")
    if not isinstance(path, str | PathLike):
        raise SignatureError(f"key must be the path of a key in PEM; got a {type(path).__name__}.")
    if _URL.match(str(path)):  # a URL may hold a password, so the message does not repeat it
        raise SignatureError("a key must be a file on this machine, not a URL; copy it here.")
    try:
        return _content(Path(path), _MOST_KEY_BYTES)
    except OSError as error:
        raise SignatureError(f"{path}: the key can't be read ({error.strerror}).") from None


def _parsed_key(pem: bytes, parse: Callable[[bytes], object]) -> object:
    """Return the key, or None if it can't be read."""
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return parse(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # a TypeError asks for a passphrase
        return None


def _content(file: Path | StoredFile, most: int = -1) -> bytes:
    with file.open("rb") if isinstance(file, Path) else file.reading() as stream:
        return stream.read(most)
