"""Against the installed wheel: database servers, by the program that it contains."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import calve
from calve import CalveError
from calve import _program, db
from test_trees import until


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A template `shop`: a table `customers` with 100 rows, by PostgreSQL."""
    if shutil.which("psql") is None:
        assert not os.environ.get("CI"), "must not be skipped in CI: psql is not installed"
        pytest.skip("psql is not installed")
    home = tmp_path_factory.mktemp("home")
    # Open to the user that a server of root runs as.
    for directory in (home, home.parent):
        directory.chmod(0o755)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CALVE_HOME", str(home))
        fill = "CREATE TABLE customers AS SELECT generate_series(1, 100) AS id"
        program("template", "create", "-q", "shop", "--engine", "postgres", "--", "psql", "-qc", fill)
        yield "shop"
        program("stop", "-q", "--all")
        program("gc", "-q")


def program(*words):
    command = [_program.program(), "db", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def running():
    return [server["name"] for server in json.loads(program("list", "--json"))["servers"]]


def psql(server, sql):
    return subprocess.run(["psql", server.url, "-qtAc", sql], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


COUNT = "SELECT count(*) FROM customers"


def test_a_server_is_reached_put_back_and_ended(shop):
    with db.start(shop, name="mine") as server:
        assert (server.name, server.engine, server.user, server.database) == ("mine", "postgres", "postgres", "postgres")
        assert server.socket == f"{server.host}/.s.PGSQL.{server.port}" and Path(server.socket).is_socket()
        assert (server.password, server.tcp_url, server.tcp_port) == (None, None, None)
        assert server.environment["PGHOST"] == server.host and server.environment["PGSERVICE"] is None
        assert server.url in repr(server)
        psql(server, "DELETE FROM customers WHERE id > 10")
        assert psql(server, COUNT) == "10"
        with db.start(shop) as other:
            assert psql(other, COUNT) == "100"
        url = server.url
        server.reset()
        assert server.url == url and psql(server, COUNT) == "100"
        assert running() == ["mine"]
    assert running() == []
    # Once more, and after the program has ended it.
    server.stop()


def test_a_server_goes_back_to_a_mark(shop):
    with db.start(shop) as server:
        psql(server, "DELETE FROM customers WHERE id > 50")
        server.mark("half")
        psql(server, "DROP TABLE customers")
        server.reset(to="half")
        assert psql(server, COUNT) == "50"
        server.reset()
        assert psql(server, COUNT) == "100"


def test_tcp(shop):
    with db.start(shop, tcp=True) as server:
        assert server.password and str(server.tcp_port) in (server.tcp_url or "")
        done = subprocess.run(["psql", server.tcp_url, "-qtAc", COUNT], check=True, stdout=subprocess.PIPE, text=True)
        assert done.stdout.strip() == "100"
        with pytest.raises(CalveError) as taken:
            db.start(shop, tcp=server.tcp_port)
        assert taken.value.hint == "choose another port, or name none to get a free one"


def test_an_exception_in_the_block_ends_the_server(shop):
    with pytest.raises(ZeroDivisionError):
        with db.start(shop):
            1 / 0
    assert running() == []


def test_a_server_ends_with_the_process_that_is_killed(shop):
    code = f"import calve.db, sys; server = calve.db.start({shop!r}, name='killed'); print(server.url, flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().startswith("postgresql://")
    assert running() == ["killed"]
    child.send_signal(signal.SIGKILL)
    child.communicate()
    until(lambda: not running())


def test_a_server_ends_with_the_first_of_its_owners(shop):
    with subprocess.Popen(["sleep", "1000"]) as owner:
        server = db.start(shop, owner_pid=[os.getpid(), owner.pid])
        assert psql(server, COUNT) == "100"
        owner.kill()
    until(lambda: running() == [])


def test_errors_say_what_to_do(shop, tmp_path, monkeypatch):
    with pytest.raises(calve.CalveError) as caught:
        db.start("none")
    assert (caught.value.code, str(caught.value).splitlines()[0]) == ("ERR_CALVE_DB", "there is no template `none`")
    assert "calve db template create none" in (caught.value.hint or "")
    with db.start(shop, name="taken"), pytest.raises(calve.CalveError, match="taken"):
        db.start(shop, name="taken")
    with pytest.raises(calve.CalveError, match="name"):
        db.start(shop, name="a b")
    with db.start(shop) as server:
        with pytest.raises(calve.CalveError, match="hint: see `calve db marks "):
            server.reset(to="never")
        server.stop()
        with pytest.raises(calve.CalveError, match="there is no"):
            server.reset()


def fake(tmp_path, text):
    (tmp_path / "_program").mkdir(exist_ok=True)
    path = tmp_path / "_program" / "calve"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_without_the_program_and_with_another_version_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(_program, "_HERE", str(tmp_path))
    with pytest.raises(calve.CalveError) as caught:
        db.start("shop")
    assert caught.value.code == "ERR_CALVE_NO_PROGRAM" and "pip" in (caught.value.hint or "")
    version = '[ "$1" != --version ] || { echo calve 0.0.1; exit; };'
    for text in [f'{version} echo "error: unexpected argument" >&2; exit 2', f"""{version} echo '{{"schema": "calve.db.server/1"}}'""", f"{version} echo [1]"]:
        fake(tmp_path, text)
        with pytest.raises(calve.CalveError, match=rf"is calve 0\.0\.1, and the package is calve {calve.__version__}") as caught:
            db.start("shop")
        assert caught.value.code == "ERR_CALVE_OTHER_VERSION" and caught.value.hint
    fake(tmp_path, f'[ "$1" != --version ] || {{ echo calve {calve.__version__}; exit; }}; kill -9 $$')
    with pytest.raises(calve.CalveError, match="ended with -9"):
        db.start("shop")


def test_a_start_waits_for_its_answer_alone(shop, tmp_path, monkeypatch):
    real = _program.program()
    command = [real, "db", "start", "--quiet", "--json", f"--owner-pid={os.getpid()}", "--", shop]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    (tmp_path / "answer").write_bytes(answer)
    # More than a pipe holds, and the answer in two parts.
    noise = "head -c 100000 /dev/zero | tr '\\0' x >&2"
    parts = f"head -c 100 {tmp_path}/answer; sleep 0.2; tail -c +101 {tmp_path}/answer"
    fake(tmp_path, f'{noise}; {parts}; exec sleep 60')
    monkeypatch.setattr(_program, "_HERE", str(tmp_path))
    began = time.monotonic()
    server = db.start(shop)
    took = time.monotonic() - began
    [left] = [one for one in _program._running if one.args[0] == str(tmp_path / "_program" / "calve")]
    left.kill()
    monkeypatch.undo()
    assert took < 30 and server.url == json.loads(answer)["url"] and psql(server, COUNT) == "100"
    server.stop()
    # That waited for the one that was killed.
    assert left.returncode is not None and running() == []


PLUGIN = """
import calve, os, pytest, subprocess, sys

def count():
    return subprocess.run(["psql", "-qtAc", "SELECT count(*) FROM customers"], check=True, capture_output=True, text=True).stdout.strip()

def test_first(calve_db):
    assert count() == "100" and os.environ["DATABASE_URL"] == calve_db.url and "PGSERVICE" not in os.environ
    subprocess.run(["psql", "-qc", "DROP TABLE customers"], check=True)

def test_second(calve_db):
    assert count() == "100"

@pytest.fixture(scope="session")
def prepared(calve_server):
    calve_server.mark("of-the-session")

def test_that_marks(prepared, calve_db):
    calve_db.mark("prepared")
    calve_db.mark("removed")
    subprocess.run([calve._program.program(), "db", "unmark", "-q", calve_db.name, "removed"], check=True)

def test_that_marks_too(prepared, calve_db):
    calve_db.mark("prepared")
    calve_db.reset(to="of-the-session")

def test_of_the_session(calve_server):
    subprocess.run(["psql", "-qc", "DELETE FROM customers"], check=True)

def test_that_sees_it(calve_server):
    assert count() == "0"
"""


def inner(tmp_path, text, *options):
    (tmp_path / "test_inner.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(tmp_path)]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path, env=os.environ | {"PGSERVICE": "elsewhere"})


def test_the_plugin_of_pytest(shop, tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\ncalve_template = none\n")
    done = inner(tmp_path, PLUGIN, "--calve-template", shop)
    assert done.returncode == 0 and "6 passed" in done.stdout, done.stdout
    assert running() == []
    done = inner(tmp_path, PLUGIN)
    assert done.returncode == 1 and "there is no template `none`\nhint: " in done.stdout, done.stdout
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = inner(tmp_path, PLUGIN)
    assert "no template is named for the database server\nhint: name one by `calve_template = NAME`" in done.stdout, done.stdout


def test_each_test_has_the_variables_of_the_worker(shop, tmp_path):
    seen = "import os\ndef seen():\n    assert os.environ['DATABASE_URL'].startswith('postgresql://') and 'PGSERVICE' not in os.environ\n"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\ncalve_template = {shop}\n")
    for text in ("def test_it():\n    seen()", "def test_1():\n    seen()\n\ndef test_2(calve_db):\n    seen()"):
        done = inner(tmp_path, f"{seen}\n{text}")
        assert done.returncode == 0, done.stdout


def test_the_plugin_imports_nothing_unless_it_is_used(tmp_path):
    text = "import sys\ndef test_it(pytestconfig):\n    assert pytestconfig.pluginmanager.has_plugin('calve') and 'calve' not in sys.modules"
    done = inner(tmp_path, text)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout
