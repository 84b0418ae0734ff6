"""Secrets of URLs (passwords, keys, signatures) appear in no message, file or name."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import distributed
import psutil
import pytest
from command import run, succeeds
from file_formats import encoded, score_table

import ordinalrisk as orisk
from ordinalrisk import cli

USER, PASSWORD, SIGNATURE = "AKIAUSER", "pass/w0rd+SECRET", "c1f2/SECRET+sig=="
SECRETS = (USER, "SECRET", "c1f2")
QUERY = f"X-Amz-Expires=60&X-Amz-Signature={SIGNATURE}"
COLUMNS = ("--scores", "p0,p1,p2", "--label", "y")

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(scope="module")
def content(draw):
    return {
        "rows.csv": encoded(score_table(*draw(150, 3, seed=1)), "rows.csv"),
        "wrong.csv": b"p0,p1,p2,y\n0.5,0.5,0.5,1\n",
        "empty.csv": b"",
    }


@pytest.fixture(scope="module")
def server(content):
    """A server that has the files, and answers other names with the number that they are."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.partition("?")[0].lstrip("/")
            body = content.get(name)
            self.send_response(int(name.partition(".")[0]) if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{http.server_port}"
        http.shutdown()


@pytest.fixture
def presigned(server):
    return lambda name: f"http://{server}/{name}?{QUERY}"


def require_no_secret(text):
    for secret in SECRETS:
        assert secret not in text


def require_none_written(folder):
    for path in folder.rglob("*"):
        require_no_secret(str(path.relative_to(folder)))
        if path.is_file():
            require_no_secret(path.read_bytes().decode("latin-1"))


def test_commands_work_with_presigned_urls_and_keep_them_to_themselves(here, presigned, content):
    rows = presigned("rows.csv")
    commands = (
        ("calibrate", rows, "--alpha", "0.1", "-o", "cal.json"),
        ("predict", "cal.json", rows, "-o", "sets.csv"),
        ("evaluate", "cal.json", rows),
        ("monitor", "watch.json", "cal.json", rows),
        ("report", "cal.json", rows, "-o", "report.html"),
        ("compare", rows),
    )
    for command in commands:
        require_no_secret(succeeds(*command).output)
    content["cal.json"] = (here / "cal.json").read_bytes()
    succeeds("evaluate", presigned("cal.json"), rows)
    assert "rows.csv" in (here / "report.json").read_text()
    require_none_written(here)


@pytest.mark.parametrize(
    "place",
    [
        "http://{server}/404.csv?{query}",
        "http://{server}/403.csv?{query}",
        "http://{server}/500.csv?{query}",
        "http://{server}/wrong.csv?{query}",
        "http://{server}/empty.csv?{query}",
        "http://{server}/empty.csv?JUSTSECRET",
        "http://{user}:{password}@{server}/404.csv",
        "http://{user}:SECRET@127.0.0.1:9/x.csv",
        "http://{user}:SECRET@127.0.0.1:9/x.csv?{query}",
        "s3://{user}:{password}@bucket/x.csv",
        "s3://{user}:SECRET@bucket/part-*.csv",
        "memory://{user}:SECRET@bucket/none.csv",
        "memory://bucket/none.csv?{query}",
        "memory://bucket/my none.csv?{query}",
        "nothing://{user}:SECRET@bucket/x.csv",
        "ftp://{user}:SECRET@127.0.0.1:9/x.csv",
        "zip://x.csv::http://{user}:SECRET@{server}/404.zip?{query}",
    ],
)
@pytest.mark.parametrize("role", ["rows", "calibration", "cluster"])
def test_errors_hold_no_secret(role, place, server, here):
    url = place.format(server=server, query=QUERY, user=USER, password=PASSWORD)
    arguments = {
        "rows": ("calibrate", url, "--alpha", "0.1", "-o", "cal.json", *COLUMNS),
        "calibration": ("evaluate", url, "rows.csv"),
        "cluster": ("calibrate", url, url, "--alpha", "0.1", "-o", "cal.json", "--cluster", "local:1"),
    }
    (here / "rows.csv").write_bytes(b"p0\n1\n")
    done = run(*arguments[role])
    assert done.exit_code in (1, 2)
    assert re.fullmatch(r"(Note: .*\n)*Error: .*\n", done.stderr), done.stderr
    require_no_secret(done.output)
    require_none_written(here)


@pytest.mark.parametrize("name", ["sets.csv", "sets.xlsx", "", "sets.csv?{query}"])
def test_places_of_output_hold_no_secret(name, here, presigned):
    succeeds("calibrate", presigned("rows.csv"), "--alpha", "0.1", "-o", "cal.json", *COLUMNS)
    out = f"memory://{USER}:SECRET@bucket/{name.format(query=QUERY)}"
    done = run("predict", "cal.json", presigned("rows.csv"), "-o", out)
    require_no_secret(done.output)
    assert "memory://***@bucket" in done.output
    assert (done.exit_code == 0) == name.startswith("sets.csv")


def test_errors_of_usage_hold_no_secret(presigned, capsys, monkeypatch):
    for arguments in (["demo", presigned("x")], ["calibrate", f"--{presigned('x')}"], [presigned("x")]):
        monkeypatch.setattr("sys.argv", ["ordinalrisk", *arguments])
        with pytest.raises(SystemExit):
            cli.run()
        require_no_secret("".join(capsys.readouterr()))


def test_errors_of_the_library_hold_no_secret(presigned, content):
    content["other.json"] = b"{}"
    content["half.json"] = b"{"
    for load in (orisk.RiskController.load, orisk.RiskMonitor.load, orisk.OnlineRiskController.load):
        for name in ("other.json", "half.json", "404.json"):
            with pytest.raises(ValueError, match=r"\*\*\*") as caught:
                load(presigned(name))
            require_no_secret(str(caught.value))


def test_a_place_that_is_named_twice_is_refused_without_its_secret(presigned):
    with pytest.raises(ValueError, match=r"rows.csv\?\*\*\*: is named twice") as caught:
        orisk.jobs.calibrate(orisk.RiskController(), [presigned("rows.csv")] * 2)
    require_no_secret(str(caught.value))


def test_a_local_cluster_listens_on_this_machine_only(here, presigned, monkeypatch):
    """And says where; the names of its output have no query."""
    succeeds("calibrate", presigned("rows.csv"), "--alpha", "0.1", "-o", "cal.json", *COLUMNS)
    listening, as_completed = [], distributed.as_completed

    def watched(*futures):
        ours = psutil.Process()
        for process in (ours, *ours.children(recursive=True)):
            found = process.net_connections("inet")
            listening.extend(each.laddr for each in found if each.status == "LISTEN")
        return as_completed(*futures)

    monkeypatch.setattr(distributed, "as_completed", watched)
    done = run("predict", "cal.json", presigned("rows.csv"), "-o", "sets", "--cluster", "local:1")
    assert done.exit_code == 0, done.output
    port = int(re.search(r"watched at http://127\.0\.0\.1:(\d+)/status", done.output)[1])
    assert port in {address.port for address in listening}
    assert {address.ip for address in listening} == {"127.0.0.1"}
    assert sorted(path.name for path in (here / "sets").iterdir()) == ["_ordinalrisk.json", "rows.csv"]
    require_no_secret(done.output)
    require_none_written(here)


@pytest.mark.parametrize("address", ["tcp://user:SECRET@127.0.0.1:9", "tls://127.0.0.1:9?token=SECRET:1"])
def test_an_address_of_a_scheduler_that_is_silent_keeps_its_password(address, presigned):
    with pytest.raises(ValueError, match="no scheduler answers there") as raised:
        orisk.jobs.calibrate(orisk.RiskController(), presigned("rows.csv"), dask=address, note=str)
    require_no_secret(str(raised.value))
