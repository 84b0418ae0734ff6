"""What can go wrong with many files on a cluster: the files, the cluster, its workers and the command itself.

A result is complete and right, or one line says why there is no result.
"""

import gzip
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path

import distributed
import fsspec
import pyarrow as pa
import pytest
import test_places
from command import INSTALLED, refusal, run, run_installed, succeeds
from distributed import Client
from effort import wait_until
from file_formats import encoded, read_rows, write_table
from test_cluster_commands import MANIFEST, PLAIN, calibration, cut, make_table, manifest, rows_in
from worker_processes import (
    answer_within,
    die_of,
    die_once,
    have_version,
    hide_ordinalrisk,
    hold_reading,
    hold_writing,
    local_cluster,
    see_only,
)

import ordinalrisk as orisk

bucket = test_places.bucket
N_ROWS = 240

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(scope="module")
def running(bucket):
    """Workers know the storage that their environment names."""
    with local_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def table(draw):
    return make_table(draw, seed=3, n_rows=N_ROWS)


@pytest.fixture(scope="module")
def saved(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("saved")
    write_table(table, folder / "train.parquet")
    succeeds("calibrate", folder / "train.parquet", *PLAIN, "-o", folder / "cal.json")
    return (folder / "cal.json").read_bytes()


@pytest.fixture
def ready(here, table, saved):
    """A calibration, and three files to predict."""
    Path("cal.json").write_bytes(saved)
    cut(table, "new")
    return here


@pytest.fixture
def one_machine(ready, table):
    """The sets of the rows in one file."""
    write_table(table, "one.parquet")
    succeeds("predict", "cal.json", "one.parquet", "-o", "one-sets.parquet")
    found = read_rows(Path("one-sets.parquet").read_bytes(), "one-sets.parquet")
    Path("one.parquet").unlink()
    Path("one-sets.parquet").unlink()
    return found


def is_as_before(*besides):
    """No file was written, neither a result nor a temporary file."""
    return {path.name for path in Path().iterdir()} == {"cal.json", "new", *besides}


NEW = ["cal.json", "new/*.parquet"]
SECOND = "new/rows-01.parquet"
OUT = ["-o", "out.json"]
BETTING = ["--loss", "divergence", "--delta", "0.1", "--confidence-bound", "betting"]
REFUSED = {
    "an input to write to": (
        ["calibrate", "new/rows-00.parquet", SECOND, *PLAIN, "-o", SECOND, "--cluster", "HERE"],
        2,
        "--out: new/rows-01.parquet is read too, and would be lost; choose another name.",
    ),
    "an input to write numbers to": (
        ["evaluate", *NEW, "--json", "new/rows-01.parquet", "--cluster", "HERE"],
        2,
        "--json: new/rows-01.parquet is read too, and would be lost; choose another name.",
    ),
    "a pattern without files": (
        ["evaluate", "cal.json", "new/*.csv", "--cluster", "HERE"],
        1,
        "new/*.csv: matches no file; correct the pattern.",
    ),
    "a folder": (["evaluate", "cal.json", "new", "--cluster", "HERE"], 1, "new: is a folder; name the files"),
    "a pipe": (
        ["predict", "cal.json", "-", "-o", "sets", "--cluster", "HERE"],
        2,
        "--cluster: workers can't read a pipe; name files.",
    ),
    "a pipe to write": (
        ["predict", *NEW, "-o", "-", "--cluster", "HERE"],
        2,
        "--out: with --cluster or several files it must be a folder, not a pipe.",
    ),
    "patients": (
        ["calibrate", "new/*", *PLAIN, "--cluster-col", "patient", *OUT, "--cluster", "HERE"],
        2,
        "--cluster-col can't be used with dask: rows of one cluster may lie in several partitions.",
    ),
    "weights": (
        ["calibrate", "new/*", *PLAIN, "--weight-col", "ratio", *OUT, "--cluster", "HERE"],
        2,
        "--weight-col can't be used with dask: each row then has a threshold of its own",
    ),
    "betting": (
        ["calibrate", "new/*", *PLAIN, *BETTING, *OUT, "--cluster", "HERE"],
        2,
        "--confidence-bound betting must know which row each step belongs to",
    ),
    "more alphas alone": (
        ["calibrate", "new/rows-00.parquet", *PLAIN, "--more-alphas", "0.2", *OUT],
        2,
        "--more-alphas is only for --cluster; otherwise every alpha is available anyway.",
    ),
    "more alphas that are no numbers": (
        ["calibrate", "new/*", *PLAIN, "--more-alphas", "0.2,x", *OUT, "--cluster", "HERE"],
        2,
        "--more-alphas",
    ),
    "more alphas that are too large": (
        ["calibrate", "new/*", *PLAIN, "--more-alphas", "2", *OUT, "--cluster", "HERE"],
        2,
        "--more-alphas: alpha must lie strictly between 0 and the largest loss, B=1; got 2.",
    ),
    "a file twice": (
        ["predict", *NEW, "new/rows-00.parquet", "-o", "sets", "--cluster", "HERE"],
        1,
        "new/rows-00.parquet: is named twice",
    ),
    "a seed": (
        ["predict", *NEW, "-o", "sets", "--random-state", "1", "--cluster", "HERE"],
        2,
        "--random-state is for calibrations with --randomize",
    ),
    "no address": (
        ["predict", *NEW, "-o", "sets", "--cluster", "localhost"],
        2,
        "--cluster: localhost is not a cluster; write the address of a scheduler, such as "
        "tcp://10.0.0.1:8786, or local, or local:4 for 4 processes on this machine.",
    ),
    "no number": (
        ["predict", *NEW, "-o", "sets", "--cluster", "local:two"],
        2,
        "--cluster: local:two is not a cluster;",
    ),
    "no processes": (
        ["predict", *NEW, "-o", "sets", "--cluster", "local:0"],
        2,
        "--cluster: local:0 has no workers; write local:2 for two of them.",
    ),
    "no protocol": (
        ["predict", *NEW, "-o", "sets", "--cluster", "mail://here:25"],
        1,
        "--cluster: mail://here:25: no scheduler answers there (unknown address scheme 'mail'",
    ),
    "no certificates": (
        ["evaluate", *NEW, "--cluster", "tls://127.0.0.1:8786"],
        1,
        "--cluster: tls://127.0.0.1:8786: no scheduler answers there (TLS expects",
    ),
}


@pytest.mark.parametrize(("arguments", "code", "said"), REFUSED.values(), ids=REFUSED)
def test_refusals_say_what_is_wrong_and_leave_nothing(arguments, code, said, ready, cluster):
    line = refusal(code, *(cluster if each == "HERE" else each for each in arguments))
    assert line.startswith(said)
    assert is_as_before()


@pytest.mark.parametrize("package", ["distributed", "fsspec"])
def test_what_is_not_installed_is_named(package, ready, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    assert refusal(1, "predict", *NEW, "-o", "sets", "--cluster", "local:2") == (
        f'--cluster needs {package}, which is not installed: pip install "ordinalrisk[cluster]"'
    )


# Files


def spoil(name, change):
    """Write one of the files again, changed."""
    path = Path("new") / name
    write_table(change(read_parquet(path)), path)


def read_parquet(path):
    return pa.parquet.read_table(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows.drop_columns("age"), "has no column 'age', which {first} has (there are id, site"),
        (
            lambda rows: rows.append_column("more", rows["age"]),
            "has a column 'more', which {first} does not have; give all files the same columns.",
        ),
        (
            lambda rows: rows.set_column(4, "age", rows["age"].cast("string")),
            "column 'age' holds string, in {first} int64; give all files the same types, or leave it out with"
            " --keep.",
        ),
        (
            lambda rows: rows.set_column(5, "p0", rows["p0"].cast("string")),
            "column 'p0' holds string, not numbers; choose other --scores.",
        ),
        (
            lambda rows: rows.set_column(6, "p1", pa.array([*rows["p1"].to_pylist()[:-1], -0.5])),
            "row 190, column 'p1': -0.5 is not a probability.",
        ),
    ],
    ids=["column missing", "column more", "other type", "text for scores", "no probability"],
)
def test_a_file_unlike_the_others_is_named(change, said, ready, cluster):
    spoil("rows-01.parquet", change)
    line = refusal(1, "predict", *NEW, "-o", "sets", "--cluster", cluster)
    first = ready / "new/rows-00.parquet"
    assert line.startswith(f"{ready}/new/rows-01.parquet: {said.format(first=first)}")
    assert not (ready / "sets" / MANIFEST).exists()


def test_columns_in_another_order_are_alike(ready, cluster, one_machine):
    spoil("rows-01.parquet", lambda rows: rows.select(rows.schema.names[::-1]))
    succeeds("predict", *NEW, "-o", "sets", "--cluster", cluster)
    assert rows_in("sets") == one_machine


def test_types_of_columns_that_are_not_kept_may_differ(ready, cluster):
    spoil("rows-01.parquet", lambda rows: rows.set_column(4, "age", rows["age"].cast("string")))
    succeeds("predict", *NEW, "-o", "sets", "--keep", "id", "--cluster", cluster)
    assert len(rows_in("sets")) == N_ROWS


def test_json_lines_keep_their_types(ready, table, cluster):
    cut(table, "lines", "rows.jsonl")
    given = ["predict", "cal.json", "lines/*", "-o", "sets", "--cluster", cluster]
    path = Path("lines/rows-01.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line | {"age": None}) + "\n" for line in lines))
    succeeds(*given)
    path.write_text("".join(json.dumps(line | {"age": str(line["age"])}) + "\n" for line in lines))
    assert "rows-01.jsonl: column 'age' holds string, in " in refusal(1, *given)


def test_the_bad_file_among_a_hundred_is_named(ready, table, cluster):
    for i in range(100):
        write_table(table.slice(i, 1), f"new/tiny-{i:03d}.arrow")
    content = Path("new/tiny-057.arrow").read_bytes()
    Path("new/tiny-057.arrow").write_bytes(content[:400])
    tiny = "new/tiny-*.arrow"
    for command in (["evaluate", "cal.json", tiny], ["calibrate", tiny, *PLAIN, "-o", "out.json"]):
        line = refusal(1, *command, "--cluster", cluster)
        assert line.startswith(f"{ready}/new/tiny-057.arrow: ")
    assert is_as_before()
    Path("new/tiny-057.arrow").write_bytes(content)
    succeeds("predict", "cal.json", tiny, "-o", "sets", "--cluster", cluster)
    assert [row["id"] for row in rows_in("sets")] == [f"{i:03d}" for i in range(100)]


def test_a_wrong_label_has_its_file_row_and_column(ready, cluster):
    at = 9
    spoil("rows-02.parquet", lambda rows: rows.set_column(at, "y", pa.array(["Mild"] * 39 + ["Wild"])))
    said = f"{ready}/new/rows-02.parquet: row 40, column 'y': the label 'Wild' is not one of the classes"
    there = ["--cluster", cluster]
    assert refusal(1, "evaluate", *NEW, *there).startswith(said)
    assert refusal(1, "report", *NEW, *there).startswith(said)
    assert refusal(1, "calibrate", "new/*", *PLAIN, *OUT, *there).startswith(said)
    assert is_as_before()


def test_a_file_that_is_not_there_for_workers(ready, cluster):
    given = [*NEW, "new/rows-99.parquet", "--cluster", cluster]
    said = f"{ready}/new/rows-99.parquet: there is no such file for a worker; name what all of them can read."
    assert refusal(1, "evaluate", *given) == said
    assert refusal(1, "predict", *given, "-o", "sets") == said


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv", "rows.arrow"])
def test_empty_files_first_between_and_last_add_nothing(name, here, table, saved, cluster):
    Path("cal.json").write_bytes(saved)
    cut(table, "new", name, cuts=[0, 100, 100, N_ROWS])
    given, there = f"new/{name.replace('.', '-*.')}", ["--cluster", cluster]
    succeeds("calibrate", given, *PLAIN, *OUT, *there)
    assert calibration("out.json") == calibration("cal.json")
    succeeds("predict", "cal.json", given, "-o", "sets", *there)
    assert [row["id"] for row in rows_in("sets")] == [f"{i:03d}" for i in range(N_ROWS)]
    succeeds("evaluate", "cal.json", given, "--json", "found.json", *there)
    assert json.loads(Path("found.json").read_text())["rows"] == N_ROWS


def test_empty_files_alone_are_an_error(ready, table, cluster):
    for i in range(3):
        write_table(table.slice(0, 0), f"new/none-{i}.parquet")
    given, there = "new/none-*.parquet", ["--cluster", cluster]
    said = f"{ready}/new/none-0.parquet and 2 more: have no rows."
    assert refusal(1, "calibrate", given, *PLAIN, *OUT, *there) == said
    assert refusal(1, "evaluate", "cal.json", given, *there) == said
    assert refusal(1, "report", "cal.json", given, *there) == said
    assert refusal(1, "predict", "cal.json", given, "-o", "sets", *there) == said
    assert not Path("sets", MANIFEST).exists()
    one = refusal(1, "evaluate", "cal.json", "new/none-1.parquet", *there)
    assert one == f"{ready}/new/none-1.parquet: has no rows."


# Where the output goes


def test_files_with_one_name_are_refused(ready, table, cluster):
    cut(table, "other")
    given = ["new/rows-00.parquet", "other/rows-00.parquet"]
    line = refusal(1, "predict", "cal.json", *given, "-o", "sets", "--cluster", cluster)
    assert line == (
        f"{ready}/other/rows-00.parquet: would be written to rows-00.parquet, like "
        f"{ready}/new/rows-00.parquet; give the files different names."
    )
    assert is_as_before("other")


def test_what_is_not_compressed_as_a_whole_is_refused(ready, table, cluster):
    Path("new/a.arrow.gz").write_bytes(gzip.compress(encoded(table, "stream.arrow")))
    given = ["predict", "cal.json", "new/a.arrow.gz", "-o", "sets", "--cluster", cluster]
    assert refusal(1, *given) == (
        f"{ready}/new/a.arrow.gz: would be written to a.arrow.gz, but arrow is not compressed as a whole; "
        "give --output-format arrow."
    )
    succeeds(*given, "--output-format", "arrow")
    assert len(rows_in("sets")) == N_ROWS


def test_output_that_is_a_file_is_refused(ready, cluster):
    line = refusal(1, "predict", *NEW, "-o", "cal.json", "--cluster", cluster)
    several = "with a cluster or several files, --out is a folder."
    assert line == f"{ready}/cal.json: is a file; {several}"
    assert is_as_before()


def test_a_folder_with_other_files_is_refused(ready, cluster):
    Path("sets").mkdir()
    for name in ("_SUCCESS", ".hidden", "notes.txt"):
        Path("sets", name).touch()
    line = refusal(1, "predict", *NEW, "-o", "sets", "--cluster", cluster)
    assert line == (
        f"{ready}/sets/notes.txt: is there already, and is not an output of these files; "
        "choose an empty folder."
    )
    assert sorted(os.listdir("sets")) == [".hidden", "_SUCCESS", "notes.txt"]
    Path("sets", "notes.txt").unlink()
    succeeds("predict", *NEW, "-o", "sets", "--cluster", cluster)


@pytest.mark.parametrize("spelled", ["new", "other/../new", "linked", "whole"])
def test_input_is_never_overwritten(spelled, ready, cluster):
    os.symlink("new", "linked")
    os.mkdir("other")
    before = {path: path.read_bytes() for path in Path("new").iterdir()}
    out = str(ready / "new") if spelled == "whole" else spelled
    line = refusal(1, "predict", *NEW, "-o", out, "--cluster", cluster)
    assert line == (
        f"{ready}/new/rows-00.parquet: is read, and would be lost; choose another folder for --out."
    )
    url = refusal(1, "predict", "cal.json", f"file://{ready}/new/*", "-o", out, "--cluster", cluster)
    assert url.endswith("rows-00.parquet: is read, and would be lost; choose another folder for --out.")
    assert {path: path.read_bytes() for path in Path("new").iterdir()} == before


def test_output_in_the_folder_of_the_input_is_refused_in_another_format_too(ready, cluster):
    given = ["-o", "new", "--output-format", "csv", "--cluster", cluster]
    line = refusal(1, "predict", *NEW, *given)
    assert line.startswith(
        f"{ready}/new/rows-00.parquet: is there already, and is not an output of these files"
    )
    assert len(os.listdir("new")) == 3


def test_a_failed_run_removes_the_list_of_the_one_before(ready, cluster):
    succeeds("predict", *NEW, "-o", "sets", "--cluster", cluster)
    spoil("rows-02.parquet", lambda rows: rows.drop_columns("age"))
    refusal(1, "predict", *NEW, "-o", "sets", "--cluster", cluster)
    assert not Path("sets", MANIFEST).exists()


def test_output_that_only_a_worker_has_is_no_output(ready, cluster, monkeypatch):
    see_only(monkeypatch, ["rows-00.parquet"])
    line = refusal(1, "predict", *NEW, "-o", "sets", "--cluster", cluster)
    assert line == (
        f"{ready}/sets/rows-01.parquet: was written by a worker, but is not here; choose a folder for --out "
        "that all machines share."
    )
    assert not Path("sets", MANIFEST).exists()


def test_an_existing_result_of_other_options_is_replaced(ready, cluster, one_machine):
    succeeds("predict", *NEW, "-o", "sets", "--alpha", "0.4", "--cluster", cluster)
    before = manifest("sets")
    assert rows_in("sets") != one_machine
    succeeds("predict", *NEW, "-o", "sets", "--cluster", cluster)
    assert rows_in("sets") == one_machine
    assert manifest("sets")["thresholds"] != before["thresholds"]


# The cluster


@pytest.fixture
def in_a_hurry(monkeypatch):
    answer_within(monkeypatch, 1)


def test_a_scheduler_that_is_not_there(ready, in_a_hurry):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    line = refusal(1, "predict", *NEW, "-o", "sets", "--cluster", f"tcp://127.0.0.1:{port}")
    assert line == (
        f"--cluster: tcp://127.0.0.1:{port}: no scheduler answers there (Timed out trying to connect to "
        f"tcp://127.0.0.1:{port} after 1 s); correct the address, or start one with: dask scheduler"
    )
    assert is_as_before()


def test_a_server_that_says_nothing_is_not_waited_for(ready, in_a_hurry):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        line = refusal(1, "evaluate", *NEW, "--cluster", address)
    assert line.startswith(f"--cluster: {address}: no scheduler answers there (TimeoutError);")


def test_a_page_to_look_at_is_no_scheduler(ready, running, in_a_hurry):
    port = running.dashboard_link.split(":")[2].split("/")[0]
    line = refusal(1, "evaluate", *NEW, "--cluster", f"127.0.0.1:{port}")
    assert line.startswith(f"--cluster: 127.0.0.1:{port}: no scheduler answers there (")


def test_a_cluster_without_workers(ready, monkeypatch):
    wait = Client.wait_for_workers
    monkeypatch.setattr(Client, "wait_for_workers", lambda client, n, timeout: wait(client, n, 0.1))
    with local_cluster(n_workers=0) as empty:
        address = empty.scheduler_address
        line = refusal(1, "evaluate", *NEW, "--cluster", address)
    assert line == f"--cluster: {address}: has no workers; start some with: dask worker {address}"


@pytest.mark.parametrize(
    ("change", "said"), [((have_version, "9.9"), "ordinalrisk 9.9"), ((hide_ordinalrisk,), "no ordinalrisk")]
)
def test_workers_with_another_version_or_none(change, said, ready):
    with local_cluster(n_workers=1) as strange:
        on_each(strange, *change)
        address = strange.scheduler_address
        line = refusal(1, "evaluate", *NEW, "--cluster", address)
    assert re.fullmatch(
        rf"--cluster: {address}: worker tcp://\S+ has {re.escape(said)}; install ordinalrisk "
        rf"{re.escape(orisk.__version__)} on all of them.",
        line,
    )


def test_a_scheduler_that_is_lost_during_the_work(ready, cluster, monkeypatch):
    def lost(*_, **__):
        raise CancelledError

    monkeypatch.setattr("distributed.as_completed", lost)
    line = refusal(1, "predict", *NEW, "-o", "sets", "--cluster", cluster)
    assert line == (
        f"--cluster: {cluster}: the scheduler was lost during the work; start it again, and repeat the "
        "command."
    )


def test_large_calibrations_are_sent_without_a_warning(ready, cluster, monkeypatch):
    from dask import config

    threshold = {"distributed.admin.large-graph-warning-threshold": "1 B"}
    with config.set(threshold):
        result = succeeds("evaluate", *NEW, "--cluster", cluster)
    assert "Sending large graph" not in result.output


# Workers and commands that are lost


@pytest.fixture
def mortal():
    """A cluster whose workers may be killed."""
    with local_cluster() as cluster:
        yield cluster


def on_each(cluster, what, *given):
    """Do something in each worker's process; gives their numbers by address."""
    with Client(cluster.scheduler_address) as client:
        client.run(what, *given)
        return client.run(os.getpid)


def has_open(number, ending):
    """Whether a process has such a file open."""
    found = []
    for link in Path(f"/proc/{number}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            found.append(os.readlink(link))
    return any(name.endswith(ending) for name in found)


@contextmanager
def meanwhile(work):
    """Do something beside what is done here; it must have ended well, and before."""
    failed = []

    def attempt():
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    yield
    assert not thread.is_alive(), "the work was over too soon"
    thread.join()
    assert not failed, failed


def parts_in(folder):
    return [path.name for path in Path(folder).glob("[!_.]*")]


def temporaries_in(folder):
    return [path.name for path in Path(folder).glob(".*.tmp")]


def cut_small(table):
    """Twelve files."""
    for path in Path("new").iterdir():
        path.unlink()
    return cut(table, "new", cuts=range(20, N_ROWS, 20))


def test_a_worker_that_is_killed_while_it_writes_is_made_up_for(ready, table, one_machine, mortal):
    cut_small(table)
    numbers = on_each(mortal, hold_writing, str(ready / "killed")).values()
    left = []

    def kill():
        wait_until(lambda: parts_in("sets") and any(has_open(number, ".tmp") for number in numbers))
        os.kill(next(number for number in numbers if has_open(number, ".tmp")), signal.SIGKILL)
        left.extend(temporaries_in("sets"))
        Path("killed").touch()

    with meanwhile(kill):
        succeeds("predict", *NEW, "-o", "sets", "--cluster", mortal.scheduler_address)
    assert left
    assert rows_in("sets") == one_machine  # and no other file is there


def test_a_worker_that_is_killed_while_it_reads_is_made_up_for(ready, table, mortal):
    given = ["calibrate", cut_small(table), *PLAIN, "--cluster", mortal.scheduler_address]
    succeeds(*given, "-o", "before.json")
    numbers = on_each(mortal, hold_reading, str(ready / "killed"))

    def has_steps(address):
        state = mortal.scheduler.workers.get(address)
        held = [] if state is None else list(state.has_what)
        return any(task.key.startswith("read_part") for task in held)

    def kill():
        wait_until(lambda: any(has_steps(address) for address in numbers))
        address = next(address for address in numbers if has_steps(address))
        os.kill(numbers[address], signal.SIGKILL)  # what it had found is lost with it
        Path("killed").touch()

    with meanwhile(kill):
        succeeds(*given, *OUT)
    assert Path("killed").exists()
    assert Path("out.json").read_bytes() == Path("before.json").read_bytes()


def test_a_worker_that_dies_of_a_question_is_made_up_for(ready, table, mortal):
    given = ["calibrate", cut_small(table), *PLAIN, "--cluster", mortal.scheduler_address]
    succeeds(*given, "-o", "before.json")
    on_each(mortal, die_once, str(ready / "died"))
    succeeds(*given, *OUT)
    assert Path("died").exists()
    assert Path("out.json").read_bytes() == Path("before.json").read_bytes()


def test_a_file_that_no_worker_survives_is_named(ready, mortal):
    for name in ("rows-00.parquet", "rows-02.parquet"):
        Path("new", name).unlink()
    mortal.scheduler.allowed_failures = 1
    on_each(mortal, die_of, "rows-01.parquet")
    assert refusal(1, "report", *NEW, "--cluster", mortal.scheduler_address) == (
        f"{ready}/new/rows-01.parquet: the workers that had it were lost again and again; do they have "
        "enough memory?"
    )
    assert is_as_before()


def test_workers_that_are_lost_in_between_are_the_fault_of_no_file(ready, mortal, monkeypatch):
    """One file, which is read already: of several, the next could lie on the worker when it dies."""
    as_completed = distributed.as_completed

    def until_all_are_read(futures):
        yield from as_completed(futures)
        Path("read").touch()

    monkeypatch.setattr(distributed, "as_completed", until_all_are_read)
    mortal.scheduler.allowed_failures = 0
    on_each(mortal, die_once, str(ready / "died"), str(ready / "read"))
    address = mortal.scheduler_address
    assert refusal(1, "calibrate", "new/rows-00.parquet", *PLAIN, *OUT, "--cluster", address) == (
        f"--cluster: {address}: workers were lost again and again; do they have enough memory?"
    )
    assert is_as_before("died", "read")


def test_a_command_that_is_killed_can_be_repeated(ready, table, one_machine, mortal):
    cut_small(table)
    on_each(mortal, hold_writing, str(ready / "killed"))
    given = ["predict", *NEW, "-o", "sets", "--cluster", mortal.scheduler_address]
    Path("sets").mkdir()
    Path("sets", MANIFEST).touch()  # of a run before
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([INSTALLED, *given], **quiet) as process:
        wait_until(lambda: parts_in("sets"))
        process.kill()
    Path("killed").touch()
    assert not Path("sets", MANIFEST).exists()
    wait_until(lambda: not mortal.scheduler.tasks and not temporaries_in("sets"))
    assert 1 <= len(parts_in("sets")) < 12
    ids = [row["id"] for row in one_machine]
    for name in parts_in("sets"):
        start = 20 * int(re.search(r"\d+", name)[0])
        found = [row["id"] for row in read_rows(Path("sets", name).read_bytes(), name)]
        assert found == ids[start : start + 20]
    lost, foreign = (Path(f"sets/.{name}.parquet.0123456789ab.tmp") for name in ("rows-03", "other"))
    lost.touch()
    foreign.touch()
    succeeds(*given)
    assert not lost.exists()
    foreign.unlink()  # which was nobody's business here
    assert rows_in("sets") == one_machine


# Storage


def test_storage_is_read_and_written_by_workers(bucket, ready, table, one_machine, cluster):
    base, there = f"{bucket}/{ready.name}", ["--cluster", cluster]
    storage = fsspec.filesystem("s3")
    for path in Path("new").iterdir():
        storage.pipe_file(f"{base}/new/{path.name}", path.read_bytes())
    new = f"{base}/new/*.parquet"
    succeeds("calibrate", "new/*", *PLAIN, "-o", "here.json", *there)
    succeeds("calibrate", new, *PLAIN, "-o", f"{base}/cal.json", *there)
    assert storage.cat_file(f"{base}/cal.json") == Path("here.json").read_bytes()
    for alpha in ("0.4", "0.1"):  # the second replaces what the first wrote
        storage.pipe_file(f"{base}/sets/.rows-00.parquet.0123456789ab.tmp", b"lost")
        succeeds("predict", f"{base}/cal.json", new, "-o", f"{base}/sets", "--alpha", alpha, *there)
        storage.invalidate_cache()
        names = sorted(path.rpartition("/")[2] for path in storage.ls(f"{base}/sets", detail=False))
        assert names == [MANIFEST, *(f"rows-{i:02d}.parquet" for i in range(3))]
    found = [read_rows(storage.cat_file(f"{base}/sets/{name}"), name) for name in names[1:]]
    assert [row for part in found for row in part] == one_machine
    listed = json.loads(storage.cat_file(f"{base}/sets/{MANIFEST}"))
    assert [(each["name"], each["rows"]) for each in listed["files"]] == [
        (name, len(part)) for name, part in zip(names[1:], found, strict=True)
    ]
    succeeds("evaluate", f"{base}/cal.json", new, "--json", f"{base}/found.json", *there)
    assert json.loads(storage.cat_file(f"{base}/found.json"))["rows"] == N_ROWS


def test_storage_is_not_overwritten_or_mixed(bucket, ready, cluster):
    base, there = f"{bucket}/{ready.name}", ["--cluster", cluster]
    storage = fsspec.filesystem("s3")
    for path in Path("new").iterdir():
        storage.pipe_file(f"{base}/new/{path.name}", path.read_bytes())
    given = ["predict", "cal.json", f"{base}/new/*.parquet", *there]
    line = refusal(1, *given, "-o", f"{base}/new/")
    assert line.endswith("rows-00.parquet: is read, and would be lost; choose another folder for --out.")
    storage.pipe_file(f"{base}/sets/notes.txt", b"mine")
    line = refusal(1, *given, "-o", f"{base}/sets")
    assert line == (
        f"{base}/sets/notes.txt: is there already, and is not an output of these files; "
        "choose an empty folder."
    )
    line = refusal(1, *given, "-o", f"{base}/sets/notes.txt")
    assert line == f"{base}/sets/notes.txt: is a file; with a cluster or several files, --out is a folder."
    line = refusal(1, "evaluate", "cal.json", f"{base}/new/*.parquet", f"{base}/new/none.parquet", *there)
    assert line.startswith(f"{base}/new/none.parquet: there is no such file for a worker;")


# The terminal


def test_progress_is_for_terminals(ready, cluster):
    command = [INSTALLED, "evaluate", *NEW, "--cluster", cluster]
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=follower, env=environment, text=True
    ) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                more = os.read(leader, 1 << 16)
            except OSError:  # nobody writes any more
                break
            shown += more
        told = process.stdout.read()
    os.close(leader)
    assert process.returncode == 0
    assert b"Evaluating 3 files" in shown
    assert b"100%" in shown
    assert "Evaluating" not in told
    quiet = run("evaluate", *NEW, "--cluster", cluster)
    assert quiet.stdout == told
    assert re.fullmatch(r"Note: The work can be watched at http://127.0.0.1:\d+/status\n", quiet.stderr)


def test_a_cluster_of_one_command(ready, one_machine):
    found = run_installed("predict", *NEW, "-o", "sets", "--cluster", "local:2")
    assert found.returncode == 0, found.stderr
    assert re.fullmatch(rb"Note: The work can be watched at http://127\.0\.0\.1:\d+/status\n", found.stderr)
    assert rows_in("sets") == one_machine


def test_a_failure_is_one_line(ready, table):
    cut_small(table)
    spoil("rows-03.parquet", lambda rows: rows.drop_columns("age"))
    found = run_installed("predict", *NEW, "-o", "sets", "--cluster", "local:1")
    assert found.returncode == 1
    note, line = found.stderr.decode().splitlines()
    assert note.startswith("Note: The work can be watched at http://")
    assert line.startswith(f"Error: {ready}/new/rows-03.parquet: has no column 'age', which ")
    assert found.stdout == b""
    assert [*Path("sets").iterdir()] == []  # all files are looked at before any is written
