"""Files anywhere: by path, by URL and in S3 the same bytes give the same results, and errors are one line."""

import bz2
import gzip
import json
import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
import s3fs
from command import INSTALLED, refusal, run, succeeds
from file_formats import NAMES, encoded, score_table
from fsspec.implementations.memory import MemoryFileSystem
from moto.server import ThreadedMotoServer

import ordinalrisk as orisk
from ordinalrisk.files import patterns, places, readers, writers
from ordinalrisk.files.atomic import replacing
from ordinalrisk.files.formats import FileError
from ordinalrisk.files.opening import opened
from ordinalrisk.files.output_folder import output_names
from ordinalrisk.files.patterns import expanded
from ordinalrisk.files.places import StoredFile, located
from ordinalrisk.files.redacting import redacted

FORMATS = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
KINDS = pytest.mark.parametrize("kind", ["file", "memory", "s3"])
STORED = pytest.mark.parametrize("kind", ["memory", "s3"])
K, N_ROWS = 3, 150
SCORES = [f"p{k}" for k in range(K)]


@pytest.fixture(scope="module")
def bucket():
    """A server that speaks S3, which s3fs finds as it finds any other: by the environment."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    environment = {
        "AWS_ENDPOINT_URL": "http://{}:{}".format(*server.get_host_and_port()),
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_MAX_ATTEMPTS": "1",
    }
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
        s3fs.S3FileSystem.clear_instance_cache()
        fsspec.filesystem("s3").makedirs("bucket", exist_ok=True)  # it remembers
        yield "s3://bucket"
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.fixture
def base(kind, request, tmp_path):
    """An empty folder of a kind, by its URL."""
    if kind == "s3":
        return f"{request.getfixturevalue('bucket')}/{tmp_path.name}"
    return f"file://{tmp_path}" if kind == "file" else f"memory://{tmp_path.name}"


@pytest.fixture(scope="module")
def rows(draw):
    return draw(N_ROWS, K, seed=11)


@pytest.fixture(scope="module")
def table(rows):
    return score_table(*rows, id=[f"{i:03d}" for i in range(N_ROWS)])


def put(url, content):
    fsspec.open(url).fs.pipe_file(fsspec.core.url_to_fs(url)[1], content)
    return url


def names_at(url):
    system, path = places.file_system(url)
    return sorted(places.name_of(found) for found in system.find(path))


def all_of(place, columns=("id", *SCORES, "y"), **options):
    with opened(place, **options) as source:
        return pa.Table.from_batches([*source.batches(columns, SCORES)])


def small_pieces(monkeypatch):
    monkeypatch.setattr(readers, "ROWS_AT_ONCE", 40)
    monkeypatch.setattr(readers, "BYTES_AT_ONCE", 2000)
    for source in (readers.CsvSource, readers.JsonLinesSource, readers.ArrowSource):
        monkeypatch.setattr(source, "bytes_ahead", 512)


# what a place is


def test_places_are_told_apart():
    assert isinstance(located("a/b.csv"), Path)
    assert located("file:///a/b.csv") == located("local:///a/b.csv") == Path("/a/b.csv")
    file = located("memory://a/b.csv.gz")
    assert isinstance(file, StoredFile)
    assert located(file) is file
    assert (str(file), file.name, file.suffix) == ("memory://a/b.csv.gz", "b.csv.gz", ".gz")
    assert str(file.with_suffix(".json")) == "memory://a/b.csv.json"
    assert file == located("memory:///a/b.csv.gz") != located("memory://a/b.csv")
    assert hash(file) == hash(located("memory:///a/b.csv.gz"))
    assert file != "memory://a/b.csv.gz"
    with pytest.raises(
        FileError, match=r"^memory://a/b.csv.gz: is not on this machine; give a local file here"
    ):
        Path(file)


@pytest.mark.parametrize(
    ("folder", "file"),
    [
        ("sets", "sets/x.csv"),
        ("s3://bucket/sets", "s3://bucket/sets/x.csv"),
        ("s3://bucket/sets/", "s3://bucket/sets/x.csv"),
        ("memory://", "memory://x.csv"),
    ],
)
def test_a_file_in_a_folder_has_its_name(folder, file):
    assert places.join(folder, "x.csv") == file
    assert places.name_of(file) == "x.csv"
    assert places.name_of("s3://bucket/sets/") == "sets"
    assert places.name_of("https://host/x.csv?X-Amz-Signature=0123") == "x.csv"


@KINDS
def test_what_is_there_is_found(kind, base):
    file = put(places.join(base, "a.csv"), b"1")
    assert (places.exists(file), places.exists(base), places.exists(places.join(base, "b"))) == (
        True,
        True,
        False,
    )
    assert (located(file).is_dir(), located(base).is_dir()) == (False, True)
    assert (located(file).is_file(), located(base).is_file()) == (True, False)
    put(places.join(base, "b"), b"1")
    assert places.exists(places.join(base, "b"))  # what was listed before is not believed


def test_what_others_write_is_seen(bucket):
    """fsspec caches the list of files in a storage; this function asks again."""
    other = s3fs.S3FileSystem(skip_instance_cache=True)
    put(f"{bucket}/others/a", b"1")
    held = located(f"{bucket}/others/b")
    held.system.ls("bucket/others")
    other.pipe_file("bucket/others/b", b"1")
    assert held.exists()
    held.system.ls("bucket/others")
    other.pipe_file("bucket/others/c", b"1")
    system, path = places.file_system(f"{bucket}/others")
    assert sorted(system.ls(path, detail=False)) == [f"bucket/others/{name}" for name in "abc"]


def test_a_question_mark_in_a_web_address_is_no_pattern():
    assert not patterns._is_pattern("https://host/x.csv?signature=1")
    assert patterns._is_pattern("memory://x?.csv")


def test_names_are_joined_and_parted():
    assert places.join("a", "b.csv") == os.path.join("a", "b.csv")
    assert places.join("s3://a", "b.csv") == places.join("s3://a/", "b.csv") == "s3://a/b.csv"
    assert [places.name_of(place) for place in ("a/b.csv", "s3://a/b.csv", "s3://a/c/")] == [
        "b.csv",
        "b.csv",
        "c",
    ]


@pytest.mark.parametrize(
    ("url", "packages"), [("s3://b/x", "fsspec s3fs"), ("gs://b/x", "fsspec gcsfs"), ("memory://x", "fsspec")]
)
def test_without_fsspec_an_error_says_what_to_install(url, packages, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(FileError) as error:
        located(url)
    assert str(error.value) == f"{url}: URLs need fsspec, which is not installed: pip install {packages}"


def test_without_the_package_of_a_protocol_an_error_says_what_to_install(monkeypatch):
    known = sys.modules["fsspec.registry"]._registry
    monkeypatch.setitem(known, "s3", None)
    monkeypatch.delitem(known, "s3")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(FileError) as error:
        located("s3://b/x")
    assert str(error.value) == (
        "s3://b/x: s3:// needs a package that is not installed (Install s3fs to access S3): "
        "pip install fsspec s3fs"
    )


def test_a_protocol_that_nobody_knows_is_an_error():
    with pytest.raises(FileError, match=r"^s33://b/x: fsspec does not know s33:// URLs"):
        located("s33://b/x")


# many files


@pytest.fixture
def folder(base):
    for name in ("b-2.csv", "b-10.csv", "a.csv", "c[1].csv", ".hidden.csv", "sub/b-3.csv", "sub/.deep/d.csv"):
        if base.startswith("file://"):
            (located(base) / name).parent.mkdir(parents=True, exist_ok=True)
        put(places.join(base, name), b"")
    return base


FOUND = {
    "b-*.csv": "b-10.csv b-2.csv",
    "b-?.csv a.csv": "b-2.csv a.csv",
    "[ab]*.csv": "a.csv b-10.csv b-2.csv",
    "**/b-*.csv": "b-10.csv b-2.csv sub/b-3.csv",
    "*": "a.csv b-10.csv b-2.csv c[1].csv",
    "c[1].csv": "c[1].csv",
    ".h*.csv": ".hidden.csv",
    "sub/.deep/*": "sub/.deep/d.csv",
    "z.csv - a.csv": "z.csv - a.csv",
}


@KINDS
def test_patterns_become_files(kind, folder):
    def placed(names):
        return [name if name == "-" else places.join(folder, name) for name in names.split()]

    for asked, found in FOUND.items():
        files = expanded(placed(asked))
        assert [*map(located, files)] == [*map(located, placed(found))], asked
        if kind != "file":
            assert all(places.is_url(place) for place in files if place != "-"), asked


def test_patterns_of_local_paths_stay_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.csv", "a.csv", "[x].csv"):
        Path(name).touch()
    Path("d.csv").mkdir()
    assert expanded(["*.csv"]) == ["[x].csv", "a.csv", "b.csv"]
    assert expanded(["[x].csv", "./a.csv"]) == ["[x].csv", "./a.csv"]


@KINDS
def test_what_names_no_file_or_one_twice_is_an_error(kind, folder):
    def problem(*names):
        with pytest.raises(FileError) as error:
            expanded([places.join(folder, name) if name else folder for name in names])
        return str(error.value)

    assert problem("q*.csv") == f"{folder}/q*.csv: matches no file; correct the pattern."
    assert problem("") == f"{folder}: is a folder; name the files in it, such as {folder}/*.parquet."
    assert problem("a.csv", "sub").startswith(f"{folder}/sub: is a folder; ")
    twice = problem("a.csv", "b-2.csv", "a*")
    assert "a.csv: is named twice (before as " in twice
    assert twice.endswith("a.csv); name each file once.")
    assert "-: is named twice" in _problem("-", "-")


def _problem(*asked):
    with pytest.raises(FileError) as error:
        expanded(asked)
    return str(error.value)


def test_one_file_by_two_names_is_twice_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").touch()
    Path("link.csv").symlink_to("a.csv")
    assert _problem("a.csv", "./a.csv").startswith("./a.csv: is named twice (before as a.csv)")
    assert "is named twice" in _problem("*.csv")
    assert "is named twice" in _problem("a.csv", f"file://{tmp_path}/a.csv")


def test_a_pattern_in_a_chain_or_with_stars_in_a_word_is_an_error(bucket):
    assert "a chain of URLs can't hold a pattern" in _problem("simplecache::memory://none/*.csv")
    assert _problem(f"{bucket}/a**.csv").startswith(f"{bucket}/a**.csv: ")


# reading


@FORMATS
@KINDS
def test_rows_are_the_same_wherever_they_are(kind, name, base, table, tmp_path, monkeypatch):
    content = encoded(table, name)
    (tmp_path / f"local.{name}").write_bytes(content)
    url = put(places.join(base, name), content)
    small_pieces(monkeypatch)
    expected, found = all_of(tmp_path / f"local.{name}"), all_of(url)
    assert found.schema == expected.schema
    assert found.equals(expected)
    with opened(tmp_path / f"local.{name}") as local, opened(url) as source:
        assert (source.schema, source.n_rows, source.compression) == (
            local.schema,
            local.n_rows,
            local.compression,
        )
        shares = [source.share_read(min(40 * i, N_ROWS)) for i, _ in enumerate(source.batches(["y"]), 1)]
        assert shares == sorted(shares)
        assert 0 < shares[0] <= shares[-1] <= 1
        assert all_of(source.name).equals(expected)


@KINDS
@pytest.mark.parametrize("compress", ["gzip", "bz2", "zstd", "lz4"])
def test_compression_and_format_are_told_by_the_first_bytes(kind, compress, base, table):
    plain = encoded(table, "rows.csv")
    content = {"gzip": gzip.compress, "bz2": bz2.compress}.get(compress)
    packed = content(plain) if content else _packed(plain, compress)
    assert all_of(put(places.join(base, "unnamed"), packed)).num_rows == N_ROWS


def _packed(plain, compress):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, compress) as stream:
        stream.write(plain)
    return sink.getvalue().to_pybytes()


@STORED
@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.csv", b"", ": is empty."),
        ("x.csv", b"p0,y\n0.5,1\nhalf,1\n", ": row 2, column 'p0': 'half' is not a number"),
        ("x.csv", b"p0,y\n0.5,1\n0.5\n", ": row 2: has 1 values under 2 column names"),
        ("x.parquet", b"PAR1 and no more", ": is not a whole Parquet file ("),
        ("x.arrow", b"ARROW1 and no more", ": is not a whole Arrow file ("),
        ("x.jsonl", b'{"p0": 1, "y": 1}\n{"p0": \n', ": row 2: can't be read as JSON"),
        ("x.jsonl", b"[1]", ": is a JSON array"),
    ],
    ids=["empty", "text", "ragged", "parquet", "arrow", "json", "array"],
)
def test_what_is_wrong_in_a_file_is_said_with_its_url(kind, name, content, problem, base):
    url = put(places.join(base, name), content)
    with pytest.raises(FileError) as error:
        all_of(url, ["p0", "y"])
    assert str(error.value).startswith(url + problem)


def test_of_a_parquet_file_only_what_is_asked_for_is_moved(bucket, monkeypatch):
    """A column, and the end of the file, of 8 MB."""
    table = pa.table({name: pa.array(range(i, 250_000 + i)) for i, name in enumerate("abcd")})
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(table, sink, use_dictionary=False, compression="none")
    url = put(f"{bucket}/large.parquet", sink.getvalue().to_pybytes())
    moved = []
    read = s3fs.core.S3File._fetch_range
    monkeypatch.setattr(
        s3fs.core.S3File, "_fetch_range", lambda self, a, b: moved.append(b - a) or read(self, a, b)
    )
    assert all_of(url, ["b"]).num_rows == 250_000
    assert 2_000_000 <= sum(moved) < 2_500_000
    moved.clear()
    lines = put(f"{bucket}/large.csv", b"a,b\n" + b"0.5,1\n" * 2_000_000)
    with opened(lines) as source:
        next(iter(source.batches(["a"])))
        assert sum(moved) < 36_000_000 < 3 * source._size + sum(moved)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet"])
def test_a_file_or_bucket_that_is_not_there_is_said(bucket, name):
    for url in (f"{bucket}/{name}", f"s3://no-such-bucket/{name}", f"memory://no-such/{name}"):
        with pytest.raises(FileError, match=f"^{url}: there is no such file") as error:
            all_of(url)
        assert "\n" not in str(error.value)
    with pytest.raises(FileError, match="bucket does not exist"):
        all_of("s3://no-such-bucket/x")


@pytest.fixture
def unreachable(bucket, monkeypatch):
    """As if the server had gone away."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # but does not listen
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        s3fs.S3FileSystem.clear_instance_cache()
        yield bucket
    s3fs.S3FileSystem.clear_instance_cache()


def test_storage_that_cant_be_reached_is_said(unreachable, monkeypatch):
    for use in (all_of, places.exists, lambda url: expanded([url + "*"])):
        with pytest.raises(FileError, match=r"^s3://bucket/x\*?: can't be reached \(Could not connect to"):
            use("s3://bucket/x")
    with pytest.raises(FileError, match="can't be reached"):
        all_of("http://127.0.0.1:9/x.csv")
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(FileError, match=r"^s3://bucket/x: can't be reached \(Unable to locate credentials\)"):
        all_of("s3://bucket/x")


def test_storage_that_goes_away_is_said(bucket, table, monkeypatch):
    url = put(f"{bucket}/rows.parquet", encoded(table, "rows.parquet"))

    def gone(*_, **__):
        raise ConnectionResetError("reset by peer")

    with opened(url) as source:
        monkeypatch.setattr(s3fs.core.S3File, "_fetch_range", gone)
        with pytest.raises(FileError) as error:
            list(source.batches(SCORES))
    assert str(error.value) == f"{url}: can't be reached (reset by peer)."


def test_denied_permission_is_said(bucket, monkeypatch):
    def denied(*_, **__):
        raise PermissionError("Access Denied")

    monkeypatch.setattr(located("s3://bucket/x").system, "info", denied)
    with pytest.raises(
        FileError, match=r"^s3://bucket/x: permission is denied \(Access Denied\); check the cred"
    ):
        all_of("s3://bucket/x")


# writing


@STORED
def test_a_stored_file_appears_whole(kind, base):
    url = places.join(base, "new[1].json")
    for text in ("old", "new"):
        with replacing(url) as temporary:
            temporary.write_text(text, encoding="utf-8")
            assert names_at(base)[0].startswith(".new[1].json.")
            assert names_at(base)[0].endswith(".tmp")
            assert places.exists(url) == (text == "new")
    assert (names_at(base), located(url).read_text("utf-8")) == (["new[1].json"], "new")


@KINDS
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("sets.parquet", ValueError),
        ("sets.csv.gz", KeyboardInterrupt),
        ("sets.arrow", KeyboardInterrupt),
        ("sets.jsonl", ValueError),
    ],
)
def test_an_interrupted_write_leaves_all_as_it_was(kind, base, error, name, table):
    url = put(places.join(base, name), b"old")

    def interrupted():
        with writers.writing(url, table.schema) as writer:
            writer.write(table.to_batches()[0])
            raise error

    with pytest.raises(error):
        interrupted()
    assert names_at(base) == [name]
    assert fsspec.open(url).open().read() == b"old"


def test_an_interrupted_write_sends_nothing_more(bucket, table, monkeypatch):
    sent = []
    monkeypatch.setattr(s3fs.core.S3File, "commit", lambda self: sent.append(self))

    def interrupted():
        with writers.writing(f"{bucket}/x.csv", table.schema) as writer:
            writer.write(table.to_batches()[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not sent
    assert not places.exists(f"{bucket}/x.csv")


def test_a_move_that_fails_leaves_all_as_it_was(bucket, monkeypatch):
    url = put(f"{bucket}/moved/x", b"old")

    def fails(*_, **__):
        raise OSError(5, "slow down")

    monkeypatch.setattr(located(url).system, "cp_file", fails)
    with pytest.raises(OSError, match="slow down") as error, replacing(url) as temporary:
        temporary.write_bytes(b"new")
    assert error.value.errno is None  # it is no error of this machine
    assert (names_at(f"{bucket}/moved"), located(url).read_text("utf-8")) == (["x"], "old")


def test_where_files_can_be_moved_they_are(monkeypatch):
    moved = []

    class Movable(MemoryFileSystem):
        protocol = "movable"

        def mv(self, path1, path2, **_):
            moved.append((path1, path2))
            self.pipe_file(path2, self.cat_file(path1))
            self.rm_file(path1)

        _strip_protocol = classmethod(lambda cls, path: "/" + path.removeprefix("movable://").strip("/"))

    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, "movable", Movable)
    with replacing("movable://moves/x") as temporary:
        temporary.write_bytes(b"new")
    assert [target for _, target in moved] == ["/moves/x"]
    assert located("movable://moves/x") != located("memory://moves/x")
    assert names_at("memory://moves") == ["x"]


@STORED
def test_a_folder_is_not_replaced(kind, base):
    put(places.join(base, "sub/x"), b"")
    with (
        pytest.raises(OSError, match="is a folder, which a file can't replace"),
        replacing(places.join(base, "sub")) as temporary,
    ):
        temporary.write_bytes(b"")
    assert names_at(base) == ["x"]


@FORMATS
@STORED
def test_what_is_written_is_what_a_local_file_holds(kind, name, base, table, tmp_path):
    for place in (url := places.join(base, name), tmp_path / name):
        with writers.writing(place, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=40):
                writer.write(batch)
    content = fsspec.open(url).open().read()
    if name.endswith(".gz"):
        assert gzip.decompress(content) == gzip.decompress((tmp_path / name).read_bytes())
    else:
        assert content == (tmp_path / name).read_bytes()


# the library and the commands


@STORED
def test_a_calibration_is_saved_and_loaded_by_url(kind, base, rows):
    controller = orisk.RiskController(alpha=0.1).calibrate(*rows)
    controller.save(url := places.join(base, "cal.json"))
    assert orisk.RiskController.load(url).threshold_ == controller.threshold_
    put(url, b"{")
    with pytest.raises(ValueError, match=f"^{url} is not a whole JSON file"):
        orisk.RiskController.load(url)
    with pytest.raises(FileError, match="there is no such file"):
        orisk.RiskController.load(places.join(base, "none.json"))


@pytest.fixture
def story(base, table, tmp_path, monkeypatch):
    """The same rows here and there."""
    monkeypatch.chdir(tmp_path)
    content = encoded(table, "rows.parquet")
    Path("rows.parquet").write_bytes(content)
    put(places.join(base, "rows.parquet"), content)
    return base


@pytest.mark.parametrize("kind", ["s3"])
def test_every_command_takes_urls(kind, story, few_stops):
    def here_and_there(*arguments, code=0):
        """Each argument that ends in @ is a file."""
        for folder in (".", story):
            placed = [places.join(folder, a[:-1]) if a.endswith("@") else a for a in arguments]
            result = run(*placed)
            assert result.exit_code == code, result.output
        return result.stdout

    here_and_there("calibrate", "rows.parquet@", "--alpha", "0.1", "-o", "cal.json@")
    assert f"Wrote {located(story)}" in here_and_there(
        "predict", "cal.json@", "rows.parquet@", "-o", "sets.parquet@"
    )
    here_and_there("evaluate", "cal.json@", "rows.parquet@", "--json", "numbers.json@")
    here_and_there("compare", "rows.parquet@", "--alpha", "0.1", "--json", "ranks.json@")
    for _ in range(2):
        here_and_there("monitor", "state.json@", "cal.json@", "rows.parquet@", "--again")
        here_and_there("drift", "drift.json@", "cal.json@", "rows.parquet@", "--again")
    here_and_there("report", "cal.json@", "rows.parquet@", "-o", "page.html@")
    written = [
        "cal.json",
        "drift.json",
        "numbers.json",
        "page.html",
        "page.json",
        "ranks.json",
        "sets.parquet",
        "state.json",
    ]
    assert names_at(story) == sorted([*written, "rows.parquet"])
    for name in {*written} - {"drift.json"}:  # which has a seed of its own
        assert fsspec.open(places.join(story, name)).open().read() == Path(name).read_bytes(), name


@pytest.mark.parametrize("kind", ["file"])
def test_a_local_file_may_be_given_as_a_url(kind, story):
    rows = places.join(story, "rows.parquet")
    succeeds("calibrate", rows, "--alpha", "0.1", "-o", places.join(story, "cal.json"))
    done = succeeds("predict", "cal.json", rows, "-o", places.join(story, "sets.csv"))
    assert done.stdout.endswith(f"Wrote {Path.cwd() / 'sets.csv'}\n")
    assert Path("sets.csv").stat().st_size


@STORED
def test_what_is_wrong_with_a_url_is_one_line(kind, story):
    rows, cal = places.join(story, "rows.parquet"), places.join(story, "cal.json")
    none, out = places.join(story, "none.parquet"), places.join(story, "x.csv")
    succeeds("calibrate", rows, "--alpha", "0.1", "-o", cal)
    before = names_at(story)
    assert refusal(2, "predict", cal, none, "-o", out) == f"there is no file {none}."
    assert refusal(2, "evaluate", none, rows) == f"there is no file {none}."
    assert refusal(2, "predict", cal, rows, "-o", rows) == (
        f"--out: {rows} is read too, and would be lost; choose another name."
    )
    assert refusal(2, "predict", cal, rows, "-o", story) == f"--out: {story} is a folder, not a file."
    assert refusal(2, "predict", cal, rows, "-o", f"{out}/") == f"--out: {out}/ is a folder, not a file."
    assert "can't infer the format" in refusal(2, "predict", cal, rows, "-o", f"{story}/x")
    packed = f"{out[:-3]}parquet.gz"
    assert "choose a name without .gz" in refusal(2, "predict", cal, rows, "-o", packed)
    assert refusal(1, "evaluate", rows, rows).startswith(f"{rows} is not a whole JSON file")
    assert refusal(1, "evaluate", cal, "s33://x").startswith("s33://x: fsspec does not know s33:// URLs")
    page = f"{story}/page.json"
    assert refusal(2, "report", cal, rows, "-o", page).startswith(f"--out: {page} is the page, so its name")
    assert names_at(story) == before


def test_what_cant_be_written_is_said_before_the_work(bucket, story_in_bucket):
    rows, cal = story_in_bucket
    for command in (
        ("predict", cal, rows, "-o", "s3://no-such-bucket/x.csv"),
        ("calibrate", "none.csv", "--alpha", "0.1", "-o", "s3://no-such-bucket/x.csv"),
        ("evaluate", cal, rows, "--json", "s3://no-such-bucket/x.csv"),
    ):
        command = [rows if part == "none.csv" else part for part in command]
        option = "--json" if "--json" in command else "--out"
        assert refusal(1, *command) == (
            f"{option}: can't write to s3://no-such-bucket/x.csv (The specified bucket does not exist)."
        )


@pytest.fixture
def story_in_bucket(bucket, table):
    rows = put(f"{bucket}/said/rows.csv", encoded(table, "rows.csv"))
    succeeds("calibrate", rows, "--alpha", "0.1", "-o", f"{bucket}/said/cal.json")
    return rows, f"{bucket}/said/cal.json"


@pytest.mark.parametrize("kind", ["memory"])
def test_commands_say_that_storage_cant_be_reached(unreachable, story, table):
    rows = "s3://bucket/rows.csv"
    Path("rows.csv").write_bytes(encoded(table, "rows.csv"))
    for arguments in ([rows, "-o", "cal.json"], ["rows.csv", "-o", "s3://bucket/cal.json"]):
        assert "can't be reached (Could not connect to" in refusal(
            1, "calibrate", *arguments, "--alpha", "0.1"
        )
    assert refusal(1, "evaluate", "s3://bucket/cal.json", "rows.csv").startswith(
        "s3://bucket/cal.json: can't be"
    )


def test_the_installed_command_leaves_nothing_to_say(bucket, table):
    """No warnings, and no messages of a server that ends after its client."""
    rows = put(f"{bucket}/installed/rows.csv.gz", encoded(table, "rows.csv.gz"))
    calibration = f"{bucket}/installed/cal.json"
    done = subprocess.run(
        [
            INSTALLED,
            "calibrate",
            rows,
            "--alpha",
            "0.1",
            "--classes",
            "0,1,2",
            "--label",
            "y",
            "-o",
            calibration,
        ],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout.decode().splitlines()[-1]) == (0, f"Wrote {calibration}")
    assert [line for line in done.stderr.decode().splitlines() if not line.startswith("Note: ")] == []
    assert json.loads(located(calibration).read_text("utf-8"))["format"]


# secrets in URLs


def test_a_stored_file_keeps_its_query_and_does_not_show_it():
    file = StoredFile("memory://AKIA:pass/word@bucket/rows.csv.gz?Signature=c1f2")
    assert str(file) == "memory://***@bucket/rows.csv.gz?***"
    assert (file.name, file.suffix) == ("rows.csv.gz", ".gz")
    beside = file.with_name("sets.csv")
    assert beside.url == "memory://AKIA:pass/word@bucket/sets.csv?Signature=c1f2"
    assert output_names([file.url], "parquet", None) == ["rows.parquet"]


@pytest.mark.parametrize(
    "place",
    ["data/part-?.csv", "s3://bucket/part-?.csv", "https://host:80/a@b.csv", "abfs://box@account.host/x.csv",
     "file:///a/b@c.csv", "tcp://10.0.0.1:8786", "-", "a?b=c.csv", "hf://datasets/me/x@main/rows.csv"],
)  # fmt: skip
def test_places_without_secrets_are_shown_as_they_are(place):
    assert redacted(place) == redacted(place, place) == place
