"""Many small files at once."""

from __future__ import annotations

import json
from typing import Any, Iterable, Iterator, Mapping, Optional, Union

from . import _native
from ._errors import CalveError, from_document
from ._trees import Cancellation, Path, handle_of, path_bytes, switch, thread_count, word

Contents = Union[str, bytes, bytearray, memoryview]
Entries = Union[Mapping[Path, Contents], Iterable["tuple[Path, Contents]"]]

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
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"{name} must be str or bytes-like, not {type(value).__name__}")


def write_files(
    root: Path,
    entries: Entries,
    *,
    concurrency: Optional[int] = None,
    mode: int = 0o666,
    flag: str = "w",
    mkdir: bool = False,
    fsync: str = "none",
    atomic: bool = False,
    on_error: str = "raise",
    cancellation: Optional[Cancellation] = None,
) -> dict[str, Any]:
    """Write files below the directory ``root``, with several threads, and never outside of it.

    ``entries`` is a mapping from paths to contents, or an iterable of pairs, which is asked for more only as fast as files are written.
    Absolute paths, ``..`` and symlinks on the way are refused. Of two entries with one path the later wins.
    ``flag``: ``w`` or ``wx``; ``fsync``: ``none``, ``end`` or ``each``; ``on_error``: ``raise`` or ``collect``.
    """
    exclusive = word(flag, "flag", ("w", "wx")) == "wx"
    collects = word(on_error, "on_error", ("raise", "collect")) == "collect"
    word(fsync, "fsync", ("none", "end", "each"))
    if isinstance(entries, (str, bytes)) or not isinstance(entries, (Mapping, Iterable)):
        raise TypeError(f"entries must be a mapping or an iterable of pairs, not {type(entries).__name__}")
    if not isinstance(mode, int) or isinstance(mode, bool):
        raise TypeError(f"mode must be int, not {type(mode).__name__}")
    if not 0 <= mode <= 0o7777:
        raise ValueError("mode must be from 0 to 0o7777")
    pairs: Iterator[Any] = iter(entries.items() if isinstance(entries, Mapping) else entries)
    switches = [exclusive, switch(mkdir, "mkdir"), switch(atomic, "atomic"), collects]
    directory = path_bytes(root, "root")
    _check_supported()
    try:
        session = _native.WriteSession(
            directory, thread_count(concurrency, "concurrency"), mode, switches, fsync, handle_of(cancellation)
        )
        try:
            _write_all(session, pairs)
            receipt = json.loads(session.finish())
        finally:
            session.close()
    except _native.Failed as failed:
        raise from_document(str(failed)) from None
    for failure in receipt["failures"]:
        failure["error"] = from_document(failure["error"])
    return receipt  # type: ignore[no-any-return]


def _check_supported() -> None:
    if not hasattr(_native, "WriteSession"):
        raise NotImplementedError("calve does not write and read many files at once on this system")


def _write_all(session: _native.WriteSession, pairs: Iterator[Any]) -> None:
    paths: list[bytes] = []
    contents: list[bytes] = []
    size = 0
    for index, entry in enumerate(pairs):
        # Two characters, or a set of two, would be taken for a pair otherwise.
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            raise TypeError(f"entries[{index}] must be a pair of a path and contents")
        path, value = entry
        paths.append(path_bytes(path, f"entries[{index}][0]"))
        contents.append(_contents(value, f"entries[{index}][1]"))
        size += len(contents[-1])
        if len(paths) == BATCH_ENTRIES or size >= BATCH_BYTES:
            session.write(paths, contents)
            paths, contents, size = [], [], 0
    if paths:
        session.write(paths, contents)


def read_files(
    paths: Iterable[Path],
    *,
    concurrency: Optional[int] = None,
    on_error: str = "raise",
    cancellation: Optional[Cancellation] = None,
) -> Iterator[tuple[Path, Union[bytes, CalveError]]]:
    """Read files with several threads: pairs of a path and its contents, in the order of ``paths``.

    With ``on_error="collect"`` the error takes the place of the contents. At most 512 files or 16 MiB are read ahead.
    """
    collects = word(on_error, "on_error", ("raise", "collect")) == "collect"
    if isinstance(paths, (str, bytes)) or not isinstance(paths, Iterable):
        raise TypeError(f"paths must be an iterable of paths, not {type(paths).__name__}")
    threads = thread_count(concurrency, "concurrency")
    _check_supported()
    return _read(enumerate(paths), threads, collects, handle_of(cancellation))


def _read(paths: Iterator[tuple[int, Path]], threads: Optional[int], collect: bool, handle: Any) -> Iterator[Any]:
    wanted: list[tuple[Path, bytes]] = []
    while True:
        while len(wanted) < BATCH_PATHS:
            following = next(paths, None)
            if following is None:
                break
            index, path = following
            wanted.append((path, path_bytes(path, f"paths[{index}]")))
        if not wanted:
            return
        try:
            read = _native.read_files([name for _, name in wanted], threads, handle)
        except _native.Failed as failed:
            raise from_document(str(failed)) from None
        for (path, _), (contents, error) in zip(wanted, read):
            if error is None:
                yield path, contents
            elif collect:
                yield path, from_document(error)
            else:
                raise from_document(error)
        del wanted[: len(read)]
