"""The program ``calve`` that is part of the package."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from typing import Optional

from . import _native

_HERE = os.path.dirname(os.path.abspath(__file__))


def program() -> Optional[str]:
    """Return its path. An application that is packed into one file may have left it out."""
    path = os.path.join(_HERE, "_program", "calve.exe" if sys.platform == "win32" else "calve")
    return path if os.path.isfile(path) and os.access(path, os.X_OK) else None


def reap(path: bytes) -> None:
    """Start deleting the trash beside ``path``: with the program, or without it on a thread of this process.

    What is left when that thread or process ends early, the next clone or removal there deletes.
    """
    beside = os.path.dirname(path.rstrip(b"/")) or (b"/" if path.startswith(b"/") else b".")
    found = program()
    if found is None or not _started(found, beside):
        try:
            _native.reap(beside)
        except _native.Failed:
            # No thread can be started.
            pass


def _started(path: str, beside: bytes) -> bool:
    try:
        if sys.platform == "win32":
            _native.start_reaper(os.fsencode(path), os.path.abspath(beside))
            return True
        # Handed over as an open descriptor, so that nothing can be put in its place.
        directory = os.open(beside, os.O_RDONLY | os.O_DIRECTORY)
        try:
            child = subprocess.Popen(
                [path, "__reap"],
                stdin=directory,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        finally:
            os.close(directory)
    except OSError:
        return False
    with _reapers_lock:
        # Those that have ended are waited for, so that no more zombies are left than there are at a time.
        _reapers[:] = [one for one in _reapers if one.poll() is None] + [child]
    return True


_reapers: list[subprocess.Popen[bytes]] = []
_reapers_lock = threading.Lock()


@atexit.register
def _leave_reapers() -> None:
    """They go on when the interpreter exits, which is no reason for a warning."""
    for one in _reapers:
        one.returncode = 0
