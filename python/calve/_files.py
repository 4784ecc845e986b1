"""Many small files at once."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Literal, Mapping, Optional, TypeVar, Union, overload

from . import _native
from ._errors import CalveError, from_document
from ._receipts import WriteReceipt
from ._trees import Cancellation, Path, handle_of, path_bytes, switch, thread_count, word

if TYPE_CHECKING:
    from typing_extensions import Buffer

    Contents = Union[str, Buffer]
    # A mapping from `str` is not one from `Path`, so the keys are checked when it is used.
    Entries = Union[Mapping[Any, Contents], Iterable[tuple[Path, Contents]]]

# Results have the type of the argument.
Name = TypeVar("Name", bound=Path)
Flag = Literal["w", "wx"]
Fsync = Literal["none", "end", "each"]

BATCH_ENTRIES = 1024
BATCH_BYTES = 8 << 20
BATCH_PATHS = 512


def _contents(value: Contents, name: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{name} has a lone surrogate, which UTF-8 has no bytes for") from error
    try:
        view = memoryview(value)
    except TypeError:
        raise TypeError(f"{name} must be str or bytes-like, not {type(value).__name__}") from None
    with view:
        return view.tobytes()


# The first of them gives a mapping that is written out where it is used its type.
@overload
def write_files(
    root: Path,
    entries: Mapping[str, Contents],
    *,
    concurrency: Optional[int] = None,
    mode: int = 0o666,
    flag: Flag = "w",
    mkdir: bool = False,
    fsync: Fsync = "none",
    atomic: bool = False,
    on_error: Literal["raise", "collect"] = "raise",
    cancellation: Optional[Cancellation] = None,
) -> WriteReceipt: ...
@overload
def write_files(
    root: Path,
    entries: Entries,
    *,
    concurrency: Optional[int] = None,
    mode: int = 0o666,
    flag: Flag = "w",
    mkdir: bool = False,
    fsync: Fsync = "none",
    atomic: bool = False,
    on_error: Literal["raise", "collect"] = "raise",
    cancellation: Optional[Cancellation] = None,
) -> WriteReceipt: ...
def write_files(
    root: Path,
    entries: Entries,
    *,
    concurrency: Optional[int] = None,
    mode: int = 0o666,
    flag: Flag = "w",
    mkdir: bool = False,
    fsync: Fsync = "none",
    atomic: bool = False,
    on_error: Literal["raise", "collect"] = "raise",
    cancellation: Optional[Cancellation] = None,
) -> WriteReceipt:
    """Write files below the directory ``root``, with several threads, and never outside of it.

    ``entries`` is a mapping from paths to contents, or an iterable of pairs, which is asked for more only as fast as files are written.
    Contents are ``str`` (written as UTF-8), ``bytes`` or whatever else has bytes, such as ``memoryview`` and ``array.array``.
    Absolute paths, ``..`` and symlinks on the way are refused. Of two entries with one path the later wins.
    ``flag``: ``w`` or ``wx``; ``fsync``: ``none``, ``end`` or ``each``; ``on_error``: ``raise`` or ``collect``.
    """
    handle = handle_of(cancellation)
    pairs = pairs_of(entries)
    with failures():
        session = write_session(root, concurrency, mode, flag, mkdir, fsync, atomic, on_error, handle)
        try:
            for paths, contents in batches(pairs, handle):
                session.write(paths, contents)
            return write_receipt(session.finish())
        finally:
            session.close()


def pairs_of(entries: Any) -> Iterator[Any]:
    if isinstance(entries, (str, bytes, bytearray, memoryview)) or not isinstance(entries, (Mapping, Iterable)):
        raise TypeError(f"entries must be a mapping or an iterable of pairs, not {type(entries).__name__}")
    return iter(entries.items() if isinstance(entries, Mapping) else entries)


@contextmanager
def failures() -> Iterator[None]:
    """Raise what the native part raises as an error for the caller."""
    try:
        yield
    except _native.Failed as failed:
        raise from_document(str(failed)) from None


def write_session(
    root: Path,
    concurrency: Optional[int],
    mode: int,
    flag: str,
    mkdir: bool,
    fsync: str,
    atomic: bool,
    on_error: str,
    handle: _native.Handle,
) -> _native.WriteSession:
    exclusive = word(flag, "flag", ("w", "wx")) == "wx"
    collects = word(on_error, "on_error", ("raise", "collect")) == "collect"
    word(fsync, "fsync", ("none", "end", "each"))
    if not isinstance(mode, int) or isinstance(mode, bool):
        raise TypeError(f"mode must be int, not {type(mode).__name__}")
    if not 0 <= mode <= 0o7777:
        raise ValueError("mode must be from 0 to 0o7777")
    switches = [exclusive, switch(mkdir, "mkdir"), switch(atomic, "atomic"), collects]
    directory, threads = path_bytes(root, "root"), thread_count(concurrency, "concurrency")
    return _native.WriteSession(directory, threads, mode, switches, fsync, handle)


def write_receipt(document: str) -> WriteReceipt:
    receipt = json.loads(document)
    for failure in receipt["failures"]:
        failure["error"] = from_document(failure["error"])
    return receipt  # type: ignore[no-any-return]


class Batch:
    """Entries that are written by one call."""

    def __init__(self) -> None:
        self.paths: list[bytes] = []
        self.contents: list[bytes] = []
        self._size = 0

    def add(self, index: int, entry: Any) -> bool:
        """Whether it is full then."""
        # Two characters, or a set of two, would be taken for a pair otherwise.
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            raise TypeError(f"entries[{index}] must be a pair of a path and contents")
        path, value = entry
        self.paths.append(path_bytes(path, f"entries[{index}][0]"))
        self.contents.append(_contents(value, f"entries[{index}][1]"))
        self._size += len(self.contents[-1])
        return len(self.paths) == BATCH_ENTRIES or self._size >= BATCH_BYTES


def batches(pairs: Iterator[Any], handle: _native.Handle) -> Iterator[tuple[list[bytes], list[bytes]]]:
    batch = Batch()
    for index, entry in enumerate(pairs):
        full = batch.add(index, entry)
        # Whoever gives the entries may take long over each.
        if full or handle.cancelled():
            yield batch.paths, batch.contents
            batch = Batch()
    if batch.paths:
        yield batch.paths, batch.contents


@overload
def read_files(
    paths: Iterable[Name],
    *,
    concurrency: Optional[int] = None,
    on_error: Literal["raise"] = "raise",
    cancellation: Optional[Cancellation] = None,
) -> Iterator[tuple[Name, bytes]]: ...
@overload
def read_files(
    paths: Iterable[Name],
    *,
    concurrency: Optional[int] = None,
    on_error: Literal["collect"],
    cancellation: Optional[Cancellation] = None,
) -> Iterator[tuple[Name, Union[bytes, CalveError]]]: ...
def read_files(
    paths: Iterable[Name],
    *,
    concurrency: Optional[int] = None,
    on_error: Literal["raise", "collect"] = "raise",
    cancellation: Optional[Cancellation] = None,
) -> Iterator[tuple[Name, Any]]:
    """Read files with several threads: pairs of a path and its contents, in the order of ``paths``.

    With ``on_error="collect"`` the error takes the place of the contents. At most 512 files or 16 MiB are read ahead.
    """
    collects = collecting(on_error)
    if isinstance(paths, (str, bytes, bytearray, memoryview)) or not isinstance(paths, Iterable):
        raise TypeError(f"paths must be an iterable of paths, not {type(paths).__name__}")
    threads = thread_count(concurrency, "concurrency")
    return _read(enumerate(paths), threads, collects, handle_of(cancellation))


def collecting(on_error: str) -> bool:
    return word(on_error, "on_error", ("raise", "collect")) == "collect"


def _read(paths: Iterator[tuple[int, Any]], threads: Optional[int], collects: bool, handle: _native.Handle) -> Iterator[Any]:
    wanted: list[tuple[Any, bytes]] = []
    while True:
        while len(wanted) < BATCH_PATHS:
            following = next(paths, None)
            if following is None:
                break
            index, path = following
            wanted.append((path, path_bytes(path, f"paths[{index}]")))
            if handle.cancelled():
                break
        if not wanted:
            return
        with failures():
            read = _native.read_files([name for _, name in wanted], threads, handle)
        yield from pairs_read(wanted, read, collects)
        del wanted[: len(read)]


def pairs_read(wanted: list[tuple[Any, bytes]], read: list[Any], collects: bool) -> Iterator[tuple[Any, Any]]:
    for (path, _), (contents, error) in zip(wanted, read):
        if error is None:
            yield path, contents
        elif collects:
            yield path, from_document(error)
        else:
            raise from_document(error)
