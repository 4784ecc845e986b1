"""Trees: clone, remove, probe."""

from __future__ import annotations

import atexit
import base64
import inspect
import json
import os
import threading
from contextlib import contextmanager
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Union

from . import _native
from ._errors import CalveMissing, Cancelled, from_document
from ._program import reap, refill
from ._receipts import REQUIREMENTS, STRATEGIES, CloneReceipt, ProbeReceipt, ReceiptPath, RemoveReceipt, Requirement, Strategy

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Progress = Callable[[int, int], object]


@atexit.register
def _end_all() -> None:
    """Daemon threads are not waited for when the interpreter exits: what they do in this package is ended.

    A thread that does not expect that would print a traceback, and is stopped for good somewhere in it. From Python 3.14 on that is mostly
    while it holds the lock of ``stderr``, and the interpreter, which wants that lock, aborts.
    """
    hook = threading.excepthook

    def silently(given: threading.ExceptHookArgs) -> None:
        if not issubclass(given.exc_type, Cancelled):
            hook(given)

    threading.excepthook = silently
    _native.end_all()


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
    if inspect.iscoroutinefunction(on_progress):
        raise TypeError("on_progress must not be a coroutine function, which nothing would await")
    return on_progress


class Operation:
    """An operation, and what to do about the trash that it may leave."""

    def __init__(
        self,
        begin: Callable[[_native.Handle], _native.Work],
        cancellation: Optional[Cancellation],
        on_progress: Optional[Progress],
        place: bytes,
        trashes: bool,
    ) -> None:
        self._begin = begin
        self.handle = handle_of(cancellation)
        self._on_progress = callback(on_progress)
        self._place = place
        self._trashes = trashes

    def begin(self) -> _native.Work:
        # What it raises now ends what has not begun.
        self.report((0, 0))
        return self._begin(self.handle)

    def report(self, done: tuple[int, int]) -> None:
        if self._on_progress is not None:
            self._on_progress(*done)

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Start deleting the trash, however the operation ends."""
        try:
            yield
        except _native.Failed as failed:
            error = from_document(str(failed))
            if self._trashes and error.code not in ("ERR_CALVE_MISSING", "ERR_CALVE_PROTECTED"):
                reap(self._place)
            raise error from None
        except BaseException:
            if self._trashes:
                reap(self._place)
            raise

    def receipt(self, work: _native.Work) -> Any:
        """Return the receipt, or raise the error, after the operation has ended."""
        receipt, trash_waits, *spares_wanted = json.loads(work.result())
        if trash_waits:
            reap(self._place)
        if spares_wanted == [True]:
            refill()
        return receipt

    def run(self) -> Any:
        """Run the operation and return its receipt."""
        work = None
        with self.settled():
            try:
                work = self.begin()
                while not work.wait():
                    self.report(work.progress())
            except BaseException:
                # Whatever it is, and also where the work has just begun.
                self.handle.cancel()
                while work is not None and not work.wait():
                    pass
                raise
            return self.receipt(work)


def cloning(
    src: Path,
    dst: Path,
    strategy: Optional[Strategy],
    require: Union[Requirement, Iterable[Requirement]],
    exclude: Union[str, Iterable[str]],
    switches: dict[str, bool],
    threads: Optional[int],
    on_progress: Optional[Progress],
    cancellation: Optional[Cancellation],
    *,
    only_file: bool = False,
) -> Operation:
    to = path_bytes(dst, "dst")
    given = (
        path_bytes(src, "src"),
        to,
        None if strategy is None else word(strategy, "strategy", STRATEGIES),
        [word(one, "require", REQUIREMENTS) for one in texts(require, "require")],
        texts(exclude, "exclude"),
        [switch(switches[name], name) for name in ("replace", "one_file_system", "sync", "verify")] + [only_file],
        thread_count(threads),
        home(),
    )
    return Operation(lambda handle: _native.clone_tree(*given, handle), cancellation, on_progress, to, switches["replace"])


def removing(path: Path, wait: bool, on_progress: Optional[Progress], cancellation: Optional[Cancellation]) -> Operation:
    what = path_bytes(path, "path")
    given = (what, switch(wait, "wait"), home())
    return Operation(lambda handle: _native.remove_tree(*given, handle), cancellation, on_progress, what, wait)


def probing(src: Path, dst: Optional[Path]) -> Operation:
    given = (path_bytes(src, "src"), path_bytes(src if dst is None else dst, "dst"))
    return Operation(lambda handle: _native.probe(*given, handle), None, None, given[1], False)


def home() -> bytes:
    """It is neither removed nor replaced."""
    return os.fsencode(os.path.expanduser("~"))


def nothing_removed(path: Path) -> RemoveReceipt:
    """The receipt of a removal that found nothing."""
    name = os.fsencode(path)
    try:
        shown: ReceiptPath = name.decode()
    except UnicodeDecodeError:
        shown = {"bytes_base64": base64.b64encode(name).decode()}
    return {"path": shown, "trash": None, "deleted_entries": 0, "warnings": [], "elapsed_ms": 0.0}


def clone_tree(
    src: Path,
    dst: Path,
    *,
    strategy: Optional[Strategy] = None,
    require: Union[Requirement, Iterable[Requirement]] = (),
    exclude: Union[str, Iterable[str]] = (),
    replace: bool = False,
    one_file_system: bool = False,
    threads: Optional[int] = None,
    sync: bool = False,
    verify: bool = False,
    on_progress: Optional[Progress] = None,
    cancellation: Optional[Cancellation] = None,
) -> CloneReceipt:
    """Make ``dst`` an independent, writable copy of ``src``, and return the receipt.

    ``dst`` is exactly what will be there; its parent must exist. It is absent or complete at any time.
    ``src`` may be ``@NAME``, a template that ``calve template create`` has made; a path that begins with @ is written ``./@NAME``.
    ``exclude`` has patterns as the lines of a .gitignore: the last that matches decides, and ``!keep`` takes back.
    ``on_progress(entries, bytes)`` is called before anything is made, and about twenty times a second until ``dst`` is there.
    """
    switches = dict(replace=replace, one_file_system=one_file_system, sync=sync, verify=verify)
    operation = cloning(src, dst, strategy, require, exclude, switches, threads, on_progress, cancellation)
    return operation.run()  # type: ignore[no-any-return]


def clone_file(
    src: Path,
    dst: Path,
    *,
    strategy: Optional[Strategy] = None,
    require: Union[Requirement, Iterable[Requirement]] = (),
    replace: bool = False,
    sync: bool = False,
    verify: bool = False,
    on_progress: Optional[Progress] = None,
    cancellation: Optional[Cancellation] = None,
) -> CloneReceipt:
    """The same for one file: a directory is refused."""
    switches = dict(replace=replace, one_file_system=False, sync=sync, verify=verify)
    operation = cloning(src, dst, strategy, require, (), switches, None, on_progress, cancellation, only_file=True)
    return operation.run()  # type: ignore[no-any-return]


def remove_tree(
    path: Path,
    *,
    wait: bool = False,
    force: bool = False,
    on_progress: Optional[Progress] = None,
    cancellation: Optional[Cancellation] = None,
) -> RemoveReceipt:
    """Remove a tree at once, whatever its size, and delete it in the background unless ``wait`` is true.

    With ``force`` nothing at ``path`` is no error.
    """
    switch(force, "force")
    try:
        return removing(path, wait, on_progress, cancellation).run()  # type: ignore[no-any-return]
    except CalveMissing:
        if not force:
            raise
        return nothing_removed(path)


def probe(src: Path, dst: Optional[Path] = None) -> ProbeReceipt:
    """Find out by trying what a place, or a pair of places, supports."""
    return probing(src, dst).run()  # type: ignore[no-any-return]
