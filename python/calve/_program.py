"""The program ``calve`` that is part of the package."""

from __future__ import annotations

import atexit
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
    """Run the program and return what it prints.

    If it prints a JSON document that begins with ``answer``, its end is not waited for.
    """
    child = subprocess.Popen([path, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _reap_left()
    try:
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
    for one in _running:
        one.returncode = 0
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_running)


@atexit.register
def _leave_running() -> None:
    """They go on when the interpreter exits, which is no reason for a warning."""
    for one in _running:
        one.returncode = 0
