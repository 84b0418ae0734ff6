"""Signatures: a signed calibration is used only as it was signed, by the key that signed it."""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys

import pytest
from command import run
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from ordinalrisk import RiskController


def pem_of(private, encryption=None):
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


def public_pem_of(private):
    return private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def write_keys(folder, name="key"):
    """The names of a new private and public key."""
    key = ed25519.Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    private.write_bytes(pem_of(key))
    private.chmod(0o600)
    public.write_bytes(public_pem_of(key))
    return private, public


@pytest.fixture
def keys(tmp_path):
    return write_keys(tmp_path)


@pytest.fixture
def calibrated(draw):
    return RiskController(alpha=0.2).calibrate(*draw(100, 4))


@pytest.fixture
def signed(calibrated, keys, tmp_path):
    calibrated.save(tmp_path / "cal.json", key=keys[0])
    return tmp_path / "cal.json"


def forge(path):
    """Another growth rule, with digests that fit: every check without a key accepts it."""
    document = json.loads(path.read_text())
    document["growth"] = {"name": "adaptive", "point": document["growth"]["point"]}
    text = json.dumps(document["growth"], sort_keys=True, separators=(",", ":"))
    document["digests"]["growth"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(document))


def test_what_was_signed_is_loaded(signed, keys, calibrated, draw):
    loaded = RiskController.load(signed, key=keys[1])
    assert loaded.predict_set(draw(50, 4, 1)[0]) == calibrated.predict_set(draw(50, 4, 1)[0])


def test_a_signature_changes_no_byte_of_the_calibration(signed, calibrated, tmp_path):
    calibrated.save(tmp_path / "plain.json")
    assert (tmp_path / "plain.json").read_bytes() == signed.read_bytes()
    assert not (tmp_path / "plain.json.sig").exists()
    assert RiskController.load(signed).threshold_ == calibrated.threshold_


def test_a_forgery_that_digests_do_not_notice_is_refused(signed, keys):
    forge(signed)
    assert RiskController.load(signed).growth.name == "adaptive"
    with pytest.raises(ValueError, match="does not match its signature"):
        RiskController.load(signed, key=keys[1])


@pytest.mark.parametrize("part", ["cal.json", "cal.json.sig"])
def test_each_byte_counts(signed, keys, part):
    path = signed.with_name(part)
    content = path.read_bytes()
    for at in range(0, len(content), max(1, len(content) // 64)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(ValueError, match="does not match"):
            RiskController.load(signed, key=keys[1])
    for other in (b"", content[:-1], content + b"\n", content * 2):
        path.write_bytes(other)
        with pytest.raises(ValueError, match="does not match"):
            RiskController.load(signed, key=keys[1])


def test_the_signature_is_checked_before_the_file_is_parsed(signed, keys):
    signed.write_bytes(b"\xff" + b"[" * 100_000)
    with pytest.raises(ValueError, match="does not match"):
        RiskController.load(signed, key=keys[1])


def test_a_signature_of_another_file_or_by_another_key_is_refused(signed, keys, calibrated, tmp_path):
    other = RiskController(alpha=0.3, classes=range(4)).calibrate([[0.25] * 4] * 9, [0, 1, 2] * 3)
    other.save(tmp_path / "other.json", key=keys[0])
    shutil.copy(tmp_path / "other.json.sig", tmp_path / "cal.json.sig")
    with pytest.raises(ValueError, match="does not match"):
        RiskController.load(signed, key=keys[1])
    calibrated.save(signed, key=write_keys(tmp_path, "stranger")[0])
    with pytest.raises(ValueError, match="another key signed it"):
        RiskController.load(signed, key=keys[1])


def test_a_missing_signature_is_refused(signed, keys):
    signed.with_name("cal.json.sig").unlink()
    with pytest.raises(ValueError, match=r"has no signature: there is no file .*cal\.json\.sig"):
        RiskController.load(signed, key=keys[1])


def test_an_unsigned_save_does_not_inherit_a_signature(signed, keys, calibrated, draw):
    with pytest.warns(UserWarning, match="is the signature of the file that was replaced"):
        RiskController(alpha=0.3).calibrate(*draw(100, 4)).save(signed)
    with pytest.raises(ValueError, match="does not match"):
        RiskController.load(signed, key=keys[1])


def test_a_file_elsewhere_has_its_signature_beside_it(calibrated, keys):
    fsspec = pytest.importorskip("fsspec")
    calibrated.save("memory://signed/cal.json", key=keys[0])
    assert RiskController.load("memory://signed/cal.json", key=keys[1]).threshold_ == calibrated.threshold_
    fsspec.filesystem("memory").pipe_file("/signed/cal.json.sig", bytes(64))
    with pytest.raises(ValueError, match="does not match"):
        RiskController.load("memory://signed/cal.json", key=keys[1])


@pytest.mark.parametrize(
    "content",
    {
        "empty": b"",
        "text": b"secret",
        "encrypted": pem_of(ed25519.Ed25519PrivateKey.generate(), BestAvailableEncryption(b"secret")),
        "RSA": pem_of(rsa.generate_private_key(65537, 2048)),
    }.items(),
    ids=lambda item: item[0],
)
def test_nothing_is_written_with_a_key_that_cannot_sign(calibrated, tmp_path, content):
    key = tmp_path / "key.pem"
    key.write_bytes(content[1])
    key.chmod(0o600)
    with pytest.raises(ValueError, match="is not an Ed25519 private key without a passphrase; make one"):
        calibrated.save(tmp_path / "cal.json", key=key)
    assert [path.name for path in tmp_path.iterdir()] == ["key.pem"]


def test_a_private_key_is_not_a_public_one(signed, keys):
    with pytest.raises(ValueError, match="is a private key, which signs; verify with its public key"):
        RiskController.load(signed, key=keys[0])


@pytest.mark.parametrize("use", ["save", "load"])
def test_a_key_that_is_not_there(signed, calibrated, tmp_path, use):
    with pytest.raises(ValueError, match=r"none\.pem: the key can't be read \(No such file"):
        getattr(calibrated, use)(signed, key=tmp_path / "none.pem")


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_private_key_that_others_may_use_is_refused(calibrated, keys, tmp_path, mode):
    keys[0].chmod(mode)
    with pytest.raises(ValueError, match=f"mode {mode:04o}.*chmod 600"):
        calibrated.save(tmp_path / "cal.json", key=keys[0])


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_keys_and_signatures_are_those_of_openssl(calibrated, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in (
        "genpkey -algorithm ed25519 -out private.pem",
        "pkey -in private.pem -pubout -out public.pem",
    ):
        subprocess.run(["openssl", *command.split()], check=True, capture_output=True)
    assert stat.S_IMODE(os.stat("private.pem").st_mode) == 0o600
    calibrated.save("cal.json", key="private.pem")
    verify = "pkeyutl -verify -pubin -inkey public.pem -rawin -in cal.json -sigfile cal.json.sig"
    subprocess.run(["openssl", *verify.split()], check=True, capture_output=True)
    assert RiskController.load("cal.json", key="public.pem").threshold_ == calibrated.threshold_


# commands


@pytest.fixture
def scores(draw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    proba, y = draw(60, 3)
    lines = [f"{a!r},{b!r},{c!r},{label}" for (a, b, c), label in zip(proba.tolist(), y, strict=True)]
    (tmp_path / "scores.csv").write_text("p0,p1,p2,label\n" + "\n".join(lines) + "\n")
    return "scores.csv"


def calibrate(scores, *more):
    return run("calibrate", scores, "--alpha", "0.2", "-o", "cal.json", *more)


COMMANDS = {
    "predict": "predict cal.json scores.csv -o sets.csv",
    "evaluate": "evaluate cal.json scores.csv --json numbers.json",
    "report": "report cal.json scores.csv -o page.html",
    "monitor": "monitor watch.json cal.json scores.csv --again",
}


@pytest.mark.usefixtures("few_stops")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_verify_before_they_write(scores, keys, tmp_path, command):
    done = calibrate(scores, "--sign", keys[0])
    assert done.exit_code == 0, done.output
    assert "Wrote cal.json and its signature cal.json.sig" in done.output
    before = {path.name for path in tmp_path.iterdir()}
    call = COMMANDS[command].split()
    forge(tmp_path / "cal.json")
    done = run(*call, "--verify", keys[1])
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "Error: cal.json does not match its signature cal.json.sig" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == before
    assert run(*call).exit_code == 0  # as ever without a key
    assert calibrate(scores, "--sign", keys[0]).exit_code == 0
    assert run(*call, "--verify", keys[1]).exit_code == 0
    (tmp_path / "cal.json.sig").unlink()
    assert "has no signature" in run(*call, "--verify", keys[1]).stderr


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda key: key.unlink(), "the key can't be read"),
        (lambda key: key.write_text("x"), "is not an Ed25519 private key"),
        (lambda key: key.chmod(0o644), "chmod 600"),
    ],
)
def test_calibrate_needs_a_key_before_it_reads_rows(scores, keys, tmp_path, spoil, message):
    spoil(keys[0])
    done = calibrate(scores, "--sign", keys[0])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "--sign" in done.stderr
    assert message in done.stderr
    assert not (tmp_path / "cal.json").exists()


def test_a_pipe_is_not_signed(scores, keys):
    done = run("calibrate", scores, "--alpha", "0.2", "-o", "-", "--sign", keys[0])
    assert done.exit_code == 2
    assert "--sign writes the signature next to the output file" in done.stderr


def test_the_signature_does_not_replace_the_key(scores, keys, tmp_path):
    shutil.move(keys[0], tmp_path / "cal.json.sig")
    done = calibrate(scores, "--sign", "cal.json.sig")
    assert done.exit_code == 2
    assert "would be lost" in done.stderr


def test_without_the_package_the_error_says_what_to_install(scores, keys, monkeypatch):
    assert calibrate(scores, "--sign", keys[0]).exit_code == 0
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for done in (
        calibrate(scores, "--sign", keys[0]),
        run("evaluate", "cal.json", scores, "--verify", keys[1]),
    ):
        assert done.exit_code == 1
        assert 'pip install "ordinalrisk[sign]"' in done.stderr


def test_the_public_key_does_not_sign_whatever_its_mode(calibrated, keys, tmp_path):
    with pytest.raises(ValueError, match="is a public key, which verifies; sign with the private key"):
        calibrated.save(tmp_path / "cal.json", key=keys[1])
    assert not (tmp_path / "cal.json").exists()


def test_another_key_than_ed25519_does_not_verify(signed, tmp_path):
    (tmp_path / "rsa.pem").write_bytes(public_pem_of(rsa.generate_private_key(65537, 2048)))
    with pytest.raises(ValueError, match="is not an Ed25519 public key; this writes the public key of"):
        RiskController.load(signed, key=tmp_path / "rsa.pem")


def test_keys_are_given_by_their_path(signed, keys):
    with pytest.raises(ValueError, match="key must be the path of a key in PEM; got a bytes"):
        RiskController.load(signed, key=keys[1].read_bytes())


def test_a_signature_that_no_longer_fits_is_told(signed, calibrated):
    with pytest.warns(UserWarning, match=r"cal\.json\.sig is the signature of the file that was replaced"):
        calibrated.save(signed)


@pytest.mark.parametrize("name", ["none.pem", "key.pem"])
def test_a_key_that_does_not_verify_is_wrong_usage(scores, keys, name):
    assert calibrate(scores, "--sign", keys[0]).exit_code == 0
    done = run("evaluate", "cal.json", scores, "--verify", keys[0].with_name(name))
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("Error: --verify: ")


@pytest.mark.parametrize("option", ["--sign", "--verify"])
def test_a_key_at_a_url_is_refused_and_not_repeated(scores, keys, option):
    assert calibrate(scores, "--sign", keys[0]).exit_code == 0
    secret = "s3://KEY:SECRET@bucket/key.pem"
    done = (
        calibrate(scores, option, secret)
        if option == "--sign"
        else run("evaluate", "cal.json", scores, option, secret)
    )
    assert (done.exit_code, "SECRET" in done.output + done.stderr) == (2, False)
    assert f"Error: {option}: a key must be a file on this machine, not a URL" in done.stderr
