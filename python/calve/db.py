"""Database servers for tests: each on a clone of a template of its own, by the program ``calve db`` that the package contains."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Sequence, Union

from . import __version__
from ._errors import CalveError, from_document, path_of
from ._program import program, run

if TYPE_CHECKING:
    from ._receipts import DbServer

SERVER = "calve.db.server/1"
SERVERS = "calve.db.servers/1"


class Server:
    """A running server, and how it is reached. It ends with its ``with`` block, by ``stop()``, or with its owner."""

    def __init__(self, document: DbServer) -> None:
        self.name: str = document["name"]
        """What ``calve db list`` calls it."""
        self.engine: str = document["engine"]
        """``postgres``, ``mariadb``, ``mysql``, ``redis`` or ``valkey``."""
        self.url: str = document["url"]
        """The address by the private socket."""
        self.tcp_url: Optional[str] = document["tcp_url"]
        """The address by TCP, with the password. ``None`` without ``tcp``."""
        self.dsn: str = document["dsn"]
        """The address as keywords of libpq for PostgreSQL."""
        self.host: str = document["host"]
        """For PostgreSQL the directory of the socket, which drivers take for a host; for MariaDB and MySQL ``localhost``."""
        self.port: int = document["port"]
        """The port, which for PostgreSQL is part of the socket's name."""
        self.socket: str = path_of(document["socket"])
        """The socket."""
        self.user: str = document["user"]
        """The superuser."""
        self.password: Optional[str] = document["password"]
        """For TCP; the socket needs none."""
        self.database: str = document["database"]
        """A database that always exists."""
        self.tcp_port: Optional[int] = document["tcp_port"]
        """The port on 127.0.0.1. ``None`` without ``tcp``."""
        self.environment: dict[str, Optional[str]] = document.get("environment", {})
        """The variables by which programs find this server and no other. ``None``: the variable must not be set."""
        self._marks: list[str] = []

    def reset(self, to: Optional[str] = None) -> None:
        """Put it back to its template, or to the mark ``to``. The address stays; sessions are cut off."""
        _document(SERVERS, "reset", "--quiet", "--json", *([] if to is None else ["--to", to]), "--", self.name)

    def mark(self, name: str) -> None:
        """Keep the present state as a mark, to which ``reset`` goes back."""
        _document("calve.db.", "mark", "--quiet", "--json", "--", self.name, name)
        self._marks.append(name)

    def _unmark(self, keep: int) -> None:
        """Remove the marks made here, but for the first ``keep``. Some may be gone already."""
        made, self._marks = self._marks[keep:], self._marks[:keep]
        if made:
            _run("unmark", "--quiet", "--", self.name, *made)

    def stop(self) -> None:
        """End it. Its files are gone."""
        done = _run("stop", "--quiet", "--json", "--", self.name)
        # It may have ended by itself, or with its owner.
        if done.returncode != 0 and _run("url", "--", self.name).returncode == 0:
            _failed(done)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<calve.db.Server {self.name} {self.url}>"


def start(
    template: str, *, name: Optional[str] = None, tcp: Union[bool, int] = False, owner_pid: Union[int, Sequence[int], None] = None
) -> Server:
    """Start a server on a clone of ``template``, and return it when it answers.

    ``tcp`` is true or a port: the server also listens on 127.0.0.1, with a password. It ends when the process ``owner_pid`` ends, by
    default this one, also by ``kill -9``. Of several, the first that ends counts.
    """
    owners = [os.getpid()] if owner_pid is None else [owner_pid] if isinstance(owner_pid, int) else owner_pid
    options = [f"--owner-pid={pid}" for pid in owners]
    if name is not None:
        options += ["--name", name]
    if tcp is not False:
        options.append("--tcp" if tcp is True else f"--tcp={tcp}")
    return Server(_document(SERVER, "start", "--quiet", "--json", *options, "--", template))


def _document(schema: str, *arguments: str) -> Any:
    """Run ``calve db`` and return what it prints, whose schema begins with ``schema``."""
    done = _run(*arguments)
    document = _parsed(done.stdout)
    if done.returncode == 0 and document.get("schema", "").startswith(schema):
        # What earlier versions print lacks it.
        if schema != SERVER or "environment" in document:
            return document
    _failed(done)


def _run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    path = program()
    if path is None:
        _raise(
            "ERR_CALVE_NO_PROGRAM",
            "the program `calve`, which starts database servers, is not part of this installation",
            "install the package's wheel with pip",
        )
    # A start has its answer before it looks after the pool.
    answer = f'{{\n  "schema": "{SERVER}"'.encode() if arguments[0] == "start" else b""
    return run(path, ["db", *arguments], answer)


def _failed(done: subprocess.CompletedProcess[bytes]) -> NoReturn:
    document = _parsed(done.stdout)
    if document.get("schema") == "calve.error/1":
        raise from_document(document)
    said = done.stderr.decode(errors="replace").strip()
    version = subprocess.run([done.args[0], "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout.strip()
    if version != f"calve {__version__}":
        text = f"`{done.args[0]}` is {version or 'not calve'}, and the package is calve {__version__}"
        _raise("ERR_CALVE_OTHER_VERSION", f"{text}: {said}" if said else text, "install the package's wheel again")
    _raise("ERR_CALVE_DB", said or f"`calve db` ended with {done.returncode}", None)


def _parsed(text: bytes) -> Any:
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _raise(code: str, message: str, hint: Optional[str]) -> NoReturn:
    error: CalveError = from_document({"code": code, "message": message, "errno": None, "path": None, "hint": hint, "refused": None})
    raise error
