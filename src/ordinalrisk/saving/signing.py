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
    """The place of the signature: beside the file, with ``.sig`` after its name.

    Examples
    --------
    >>> signature_place("models/cal.json").as_posix()
    'models/cal.json.sig'
    """
    file = located(path)
    return file.with_name(f"{file.name}.sig")


def private_key(path: str | PathLike[str]) -> Ed25519PrivateKey:
    """Read the key that signs.

    Raises
    ------
    SignatureError
        If the file is not an Ed25519 private key in PEM without a passphrase, or if other users of this
        machine may read or write it.
    """
    _require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    pem = _pem(path)
    if b"PUBLIC KEY" in pem:
        raise SignatureError(f"{path}: is a public key, which verifies; sign with the private key.")
    if os.name == "posix" and (mode := stat.S_IMODE(os.stat(path).st_mode)) & 0o077:
        raise SignatureError(f"{path}: other users may use this key (mode {mode:04o}); run chmod 600 {path}.")
    key = _parsed(pem, lambda pem: load_pem_private_key(pem, None))
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError(f"{path}: is not an Ed25519 private key without a passphrase; make one: {_MAKE}")
    return key


def public_key(path: str | PathLike[str]) -> Ed25519PublicKey:
    """Read the key that verifies.

    Raises
    ------
    SignatureError
        If the file is not an Ed25519 public key in PEM.
    """
    _require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    pem = _pem(path)
    if b"PRIVATE KEY" in pem:
        raise SignatureError(
            f"{path}: is a private key, which signs; verify with its public key, which this writes: {_PUBLIC}"
        )
    key = _parsed(pem, load_pem_public_key)
    if not isinstance(key, Ed25519PublicKey):
        raise SignatureError(
            f"{path}: is not an Ed25519 public key; this writes the public key of a private one: {_PUBLIC}"
        )
    return key


def verified_bytes(path: str | PathLike[str], key: str | PathLike[str]) -> bytes:
    """Read a file and its signature, and return the bytes that the owner of the private key signed.

    The file is read once: what is verified is what is returned.

    Parameters
    ----------
    path : path
        The file. Its signature has the same name with ``.sig`` after it.
    key : path
        The public key in PEM.

    Raises
    ------
    SignatureError
        If the signature is missing, or is not one of these bytes by this key.
    """
    verifier, file, place = public_key(key), located(path), signature_place(path)
    from cryptography.exceptions import InvalidSignature

    if not place.exists():
        raise SignatureError(f"{file} has no signature: there is no file {place}. Nothing was loaded.")
    content, signature = _bytes_of(file), _bytes_of(place, _SIGNATURE_BYTES + 1)
    try:
        verifier.verify(signature, content)
    except InvalidSignature:
        raise SignatureError(
            f"{file} does not match its signature {place} by the key {key}: the file or its signature was "
            "changed, or another key signed it. Nothing was loaded."
        ) from None
    return content


def _pem(path: str | PathLike[str]) -> bytes:
    """What the file of a key holds."""
    if not isinstance(path, str | PathLike):
        raise SignatureError(f"key must be the path of a key in PEM; got a {type(path).__name__}.")
    if _URL.match(str(path)):  # which may hold a password, so it is not repeated
        raise SignatureError("a key must be a file on this machine, not a URL; copy it here.")
    try:
        return _bytes_of(Path(path), _MOST_KEY_BYTES)
    except OSError as error:
        raise SignatureError(f"{path}: the key can't be read ({error.strerror}).") from None


def _parsed(pem: bytes, parse: Callable[[bytes], object]) -> object:
    """The key, None if there is none that can be read."""
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return parse(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # a TypeError asks for a passphrase
        return None


def _bytes_of(file: Path | StoredFile, most: int = -1) -> bytes:
    with file.open("rb") if isinstance(file, Path) else file.reading() as stream:
        return stream.read(most)


def _require_cryptography() -> None:
    if find_spec("cryptography") is None:
        raise ImportError(f"signatures need cryptography: {INSTALL_SIGN}")
