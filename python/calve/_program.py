"""The program ``calve`` that is part of the package."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import subprocess
import threading
from typing import Optional

from . import _native
from ._platform import is_supported, unsupported

_HERE = os.path.dirname(os.path.abspath(__file__))


def program() -> Optional[str]:
    """Return its path. An application that is packed into one file may have left it out."""
    if not is_supported():
        raise unsupported()
    path = os.path.join(_HERE, "_program", "calve")
    return path if os.path.isfile(path) and os.access(path, os.X_OK) else None


def run(path: str, words: list[str], answer: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the program and return what it prints. A process that an earlier call has started, and that waits, is used if there is one.

    If it prints a JSON document that begins with ``answer``, its end is not waited for.
    """
    # pytest changes this variable for each test, and the program does not read it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    here = (path, os.getpid(), os.geteuid(), _directory(), environment)
    waited = _told(_taken(here), words)
    child = waited or _piped(path, words, stdin=subprocess.DEVNULL)
    done = _done(child, words, answer, here)
    if waited is None or (done.returncode != _UNUSED and done.returncode >= 0):
        return done
    # It had just ended: its time was over, or by Ctrl-C.
    return _done(_piped(path, words, stdin=subprocess.DEVNULL), words, answer, here)


def _done(child: subprocess.Popen[bytes], words: list[str], answer: bytes, here: _Here) -> subprocess.CompletedProcess[bytes]:
    """Return what it prints until it ends, or has given the answer."""
    path = here[0]
    _reap_left()
    try:
        if not _waiting:
            # While the other one works. If it cannot be started, the next call waits for its start.
            with contextlib.suppress(OSError):
                _waiting.append((_piped(path, ["__await"], stdin=subprocess.PIPE), here))
        output, errors = _read(child, answer)
        if _is_whole(output, answer):
            _leave(child)
            return subprocess.CompletedProcess([path, *words], 0, output, errors)
        child.wait()
    except BaseException:
        child.kill()
        child.wait()
        raise
    finally:
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()
    return subprocess.CompletedProcess([path, *words], child.returncode, output, errors)


_UNUSED = 125


def _read(child: subprocess.Popen[bytes], answer: bytes) -> tuple[bytes, bytes]:
    """Return what it has printed on stdout and stderr when it ends, or has given the answer."""
    read = {1: b"", 2: b""}
    # This one needs no descriptor.
    with getattr(selectors, "PollSelector", selectors.SelectSelector)() as streams:
        for number, stream in ((1, child.stdout), (2, child.stderr)):
            if stream is not None:
                streams.register(stream, selectors.EVENT_READ, number)
        while streams.get_map() and not _is_whole(read[1], answer):
            for key, _ in streams.select():
                part = os.read(key.fd, 1 << 16)
                read[key.data] += part
                if not part:
                    streams.unregister(key.fileobj)
    return read[1], read[2]


def _is_whole(output: bytes, answer: bytes) -> bool:
    return answer != b"" and output.startswith(answer) and output.endswith(b"\n}\n")


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        # It was removed.
        return ""


def _piped(path: str, words: list[str], stdin: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([path, *words], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _told(child: Optional[subprocess.Popen[bytes]], words: list[str]) -> Optional[subprocess.Popen[bytes]]:
    """Return the process that waited, once it has its command line."""
    if child is None or child.stdin is None:
        return None
    stdin, child.stdin = child.stdin, None
    try:
        with stdin:
            # The end of the line: a process that was forked from this one may have the pipe open too.
            stdin.write(json.dumps(words, ensure_ascii=False).encode() + b"\n")
    except (OSError, UnicodeEncodeError):
        # It was ended, as by Ctrl-C; or this cannot be said in JSON.
        child.communicate()
        return None
    return child


_Here = tuple[str, int, int, str, dict[str, str]]
_waiting: list[tuple[subprocess.Popen[bytes], _Here]] = []


def _taken(here: Optional[_Here]) -> Optional[subprocess.Popen[bytes]]:
    """Return the process that waits, if what it was started with still holds. Else it ends."""
    try:
        child, there = _waiting.pop()
    except IndexError:
        return None
    if here == there and child.poll() is None:
        return child
    if there[1] == os.getpid():
        child.communicate()
    else:
        # That of the process that this one was forked from.
        child.returncode = 0
    return None


def reap(path: bytes) -> None:
    """Start deleting the trash beside ``path``: with the program, or without it on a thread of this process.

    What is left when that thread or process ends early, the next clone or removal there deletes.
    """
    beside = os.path.dirname(path.rstrip(b"/")) or (b"/" if path.startswith(b"/") else b".")
    found = program()
    if found is None or not _reaper_started(found, beside):
        try:
            _native.reap(beside)
        except _native.Failed:
            # No thread can be started.
            pass


def refill() -> None:
    """Start building the spares that are missing. Without the program, the next one that is handed over is missed."""
    found = program()
    if found is not None:
        try:
            _start([found, "__refill"], subprocess.DEVNULL)
        except OSError:
            pass


def _reaper_started(path: str, beside: bytes) -> bool:
    try:
        # Handed over as an open descriptor, so that nothing can be put in its place.
        directory = os.open(beside, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _start([path, "__reap"], directory)
        finally:
            os.close(directory)
    except OSError:
        return False
    return True


def _start(command: list[str], stdin: int) -> None:
    null = subprocess.DEVNULL
    _leave(subprocess.Popen(command, stdin=stdin, stdout=null, stderr=null, cwd="/", start_new_session=True))


def _leave(child: subprocess.Popen[bytes]) -> None:
    """Do not wait for the end of a process."""
    _reap_left()
    with _running_lock:
        _running.append(child)


def _reap_left() -> None:
    """Wait for those that have ended, so that no more zombies are left than there are at a time."""
    with _running_lock:
        _running[:] = [one for one in _running if one.poll() is None]


_running: list[subprocess.Popen[bytes]] = []
_running_lock = threading.Lock()


def _forget_running() -> None:
    """After a fork, they are the parent's, and another of its threads may have had the lock."""
    global _running_lock
    _running_lock = threading.Lock()
    waiting = [one for one, _ in _waiting]
    for one in _running + waiting:
        one.returncode = 0
    # Its end of the pipe would keep the process that waits from the end of what it is told.
    for one in waiting:
        for stream in (one.stdin, one.stdout, one.stderr):
            if stream is not None:
                stream.close()
    _running.clear()
    _waiting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_running)


@atexit.register
def _end_waiting() -> None:
    _taken(None)


@atexit.register
def _leave_running() -> None:
    """They go on when the interpreter exits, which is no reason for a warning."""
    for one in _running:
        one.returncode = 0
