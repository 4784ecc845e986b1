"""Trees: clone, remove, probe."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from typing import Any, Callable, Iterable, Optional, Sequence, Union

from . import _native
from ._errors import from_document

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Progress = Callable[[int, int], object]

STRATEGIES = ("snapshot", "clonefile", "reflink", "copy", "hardlink")
REQUIREMENTS = ("instant", "cow", "stable")

# Daemon threads are not waited for when the interpreter exits.
atexit.register(_native.end_all)


class Cancellation:
    """A switch that another thread throws to end an operation. It is for one operation."""

    def __init__(self) -> None:
        self._handle = _native.Handle()

    def cancel(self) -> None:
        """End the operation as soon as possible."""
        self._handle.cancel()

    @property
    def cancelled(self) -> bool:
        """Whether it has been thrown."""
        return self._handle.cancelled()


def path_bytes(path: Path, name: str) -> bytes:
    try:
        encoded = os.fsencode(path)
    except TypeError:
        raise TypeError(f"{name} must be str, bytes or os.PathLike, not {type(path).__name__}") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} has a lone surrogate that stands for no byte of a name") from error
    if not encoded or b"\0" in encoded:
        raise ValueError(f"{name} must not be empty or contain a null character")
    if sys.platform == "win32":
        # There lone surrogates have bytes, and no way into the native part. What this raises is a ValueError.
        encoded.decode()
    return encoded


def texts(value: Union[str, Iterable[str]], name: str) -> list[str]:
    try:
        listed = [value] if isinstance(value, str) else list(value)
    except TypeError:
        raise TypeError(f"{name} must be str or an iterable of str, not {type(value).__name__}") from None
    if not all(isinstance(one, str) for one in listed):
        raise TypeError(f"{name} must be str or an iterable of str")
    return listed


def thread_count(value: Optional[int], name: str = "threads") -> Optional[int]:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be int, not {type(value).__name__}")
    if not 1 <= value <= 64:
        raise ValueError(f"{name} must be from 1 to 64")
    return value


def switch(value: bool, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be bool, not {type(value).__name__}")
    return value


def word(value: str, name: str, choices: Sequence[str]) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be str, not {type(value).__name__}")
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    return value


def handle_of(cancellation: Optional[Cancellation]) -> Any:
    if cancellation is None:
        return _native.Handle()
    if not isinstance(cancellation, Cancellation):
        raise TypeError(f"cancellation must be a calve.Cancellation, not {type(cancellation).__name__}")
    return cancellation._handle


def callback(on_progress: Optional[Progress]) -> Optional[Progress]:
    if on_progress is not None and not callable(on_progress):
        raise TypeError(f"on_progress must be callable, not {type(on_progress).__name__}")
    return on_progress


def clone_tree(
    src: Path,
    dst: Path,
    *,
    strategy: Optional[str] = None,
    require: Union[str, Iterable[str]] = (),
    exclude: Union[str, Iterable[str]] = (),
    replace: bool = False,
    one_file_system: bool = False,
    threads: Optional[int] = None,
    sync: bool = False,
    verify: bool = False,
    on_progress: Optional[Progress] = None,
    cancellation: Optional[Cancellation] = None,
) -> dict[str, Any]:
    """Make ``dst`` an independent, writable copy of ``src``, and return the receipt (``calve.clone/1``).

    ``dst`` is exactly what will be there; its parent must exist. It is absent or complete at any time.
    ``on_progress(entries, bytes)`` is called about twenty times a second.
    """
    given = dict(replace=replace, one_file_system=one_file_system, sync=sync, verify=verify)
    switches = [switch(value, name) for name, value in given.items()] + [False]
    return _clone(src, dst, strategy, require, exclude, switches, threads, on_progress, cancellation)


def clone_file(
    src: Path,
    dst: Path,
    *,
    strategy: Optional[str] = None,
    require: Union[str, Iterable[str]] = (),
    replace: bool = False,
    sync: bool = False,
    verify: bool = False,
    on_progress: Optional[Progress] = None,
    cancellation: Optional[Cancellation] = None,
) -> dict[str, Any]:
    """The same for one file: a directory is refused."""
    switches = [switch(replace, "replace"), False, switch(sync, "sync"), switch(verify, "verify"), True]
    return _clone(src, dst, strategy, require, (), switches, None, on_progress, cancellation)


def _clone(
    src: Path,
    dst: Path,
    strategy: Optional[str],
    require: Union[str, Iterable[str]],
    exclude: Union[str, Iterable[str]],
    switches: list[bool],
    threads: Optional[int],
    on_progress: Optional[Progress],
    cancellation: Optional[Cancellation],
) -> dict[str, Any]:
    to = path_bytes(dst, "dst")
    try:
        answer = _native.clone_tree(
            path_bytes(src, "src"),
            to,
            None if strategy is None else word(strategy, "strategy", STRATEGIES),
            [word(one, "require", REQUIREMENTS) for one in texts(require, "require")],
            texts(exclude, "exclude"),
            switches,
            thread_count(threads),
            os.fsencode(os.path.expanduser("~")),
            handle_of(cancellation),
            callback(on_progress),
        )
    except _native.Failed as failed:
        raise from_document(str(failed)) from None
    receipt, trash_waits = json.loads(answer)
    if trash_waits:
        _reap(to)
    return receipt  # type: ignore[no-any-return]


def remove_tree(
    path: Path,
    *,
    wait: bool = False,
    on_progress: Optional[Progress] = None,
    cancellation: Optional[Cancellation] = None,
) -> dict[str, Any]:
    """Remove a tree at once, whatever its size; a background process deletes it, unless ``wait`` is true."""
    what = path_bytes(path, "path")
    home = os.fsencode(os.path.expanduser("~"))
    try:
        answer = _native.remove_tree(what, switch(wait, "wait"), home, handle_of(cancellation), callback(on_progress))
    except _native.Failed as failed:
        raise from_document(str(failed)) from None
    receipt, trashed = json.loads(answer)
    if trashed:
        _reap(what)
    return receipt  # type: ignore[no-any-return]


def probe(src: Path, dst: Optional[Path] = None) -> dict[str, Any]:
    """What a place, or a pair of places, can do, found out by trying (``calve.probe/1``)."""
    try:
        answer = _native.probe(path_bytes(src, "src"), path_bytes(src if dst is None else dst, "dst"))
    except _native.Failed as failed:
        raise from_document(str(failed)) from None
    return json.loads(answer)  # type: ignore[no-any-return]


def _reap(path: bytes) -> None:
    """Start a process that deletes the trash beside ``path``. Should it not start, the next clone or removal there tries again."""
    if not sys.executable:
        # Python is part of another program, and there is nothing to start.
        return
    beside = os.path.dirname(path.rstrip(b"/")) or (b"/" if path.startswith(b"/") else b".")
    where = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    program = "import sys; sys.path.insert(0, sys.argv[1]); from calve import _native; _native.reap(sys.argv[2].encode())"
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        command = [sys.executable, "-I", "-c", program, where, os.fsdecode(os.path.abspath(beside))]
        subprocess.Popen(command, creationflags=flags, close_fds=True, cwd=os.path.dirname(sys.executable)).returncode = 0
        return
    try:
        directory = os.open(beside, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        child = subprocess.Popen(
            # Handed over as an open descriptor, so that nothing can be put in its place.
            [sys.executable, "-I", "-c", program, where, f"/dev/fd/{directory}"],
            pass_fds=[directory],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        with _reapers_lock:
            # Those that have ended are waited for, so that no more zombies are left than there are at a time.
            _reapers[:] = [one for one in _reapers if one.poll() is None] + [child]
    except OSError:
        pass
    finally:
        os.close(directory)


_reapers: list[subprocess.Popen[bytes]] = []
_reapers_lock = threading.Lock()


@atexit.register
def _leave_reapers() -> None:
    """They go on when the interpreter exits, which is no reason for a warning."""
    for one in _reapers:
        one.returncode = 0
