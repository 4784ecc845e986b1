"""The functions of ``calve`` for ``asyncio``: the event loop goes on while native threads work.

A task that is cancelled ends the work and waits for its end, so that it leaves what a ``Cancellation`` would leave. ``on_progress`` is
called in the event loop's thread.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Callable, Iterable, Literal, Mapping, Optional, Union, overload

from . import _files, _native
from ._errors import CalveError, CalveMissing
from ._files import Flag, Fsync, Name
from ._receipts import CloneReceipt, ProbeReceipt, RemoveReceipt, Requirement, Strategy, WriteReceipt
from ._trees import Operation, Path, Progress, cloning, handle_of, nothing_removed, path_bytes, probing, removing, switch, thread_count

if TYPE_CHECKING:
    from ._files import Contents, Entries

__all__ = ["clone_file", "clone_tree", "probe", "read_files", "remove_tree", "write_files"]


async def clone_tree(
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
) -> CloneReceipt:
    """Do what ``calve.clone_tree`` does."""
    switches = dict(replace=replace, one_file_system=one_file_system, sync=sync, verify=verify)
    operation = cloning(src, dst, strategy, require, exclude, switches, threads, on_progress, None)
    return await _run(operation)  # type: ignore[no-any-return]


async def clone_file(
    src: Path,
    dst: Path,
    *,
    strategy: Optional[Strategy] = None,
    require: Union[Requirement, Iterable[Requirement]] = (),
    replace: bool = False,
    sync: bool = False,
    verify: bool = False,
    on_progress: Optional[Progress] = None,
) -> CloneReceipt:
    """Do what ``calve.clone_file`` does."""
    switches = dict(replace=replace, one_file_system=False, sync=sync, verify=verify)
    operation = cloning(src, dst, strategy, require, (), switches, None, on_progress, None, only_file=True)
    return await _run(operation)  # type: ignore[no-any-return]


async def remove_tree(
    path: Path, *, wait: bool = False, force: bool = False, on_progress: Optional[Progress] = None
) -> RemoveReceipt:
    """Do what ``calve.remove_tree`` does."""
    switch(force, "force")
    try:
        return await _run(removing(path, wait, on_progress, None))  # type: ignore[no-any-return]
    except CalveMissing:
        if not force:
            raise
        return nothing_removed(path)


async def probe(src: Path, dst: Optional[Path] = None) -> ProbeReceipt:
    """Do what ``calve.probe`` does."""
    return await _run(probing(src, dst))  # type: ignore[no-any-return]


@overload
async def write_files(
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
) -> WriteReceipt: ...
@overload
async def write_files(
    root: Path,
    entries: Union[Entries, AsyncIterable[tuple[Path, Contents]]],
    *,
    concurrency: Optional[int] = None,
    mode: int = 0o666,
    flag: Flag = "w",
    mkdir: bool = False,
    fsync: Fsync = "none",
    atomic: bool = False,
    on_error: Literal["raise", "collect"] = "raise",
) -> WriteReceipt: ...
async def write_files(
    root: Path,
    entries: Union[Entries, AsyncIterable[tuple[Path, Contents]]],
    *,
    concurrency: Optional[int] = None,
    mode: int = 0o666,
    flag: Flag = "w",
    mkdir: bool = False,
    fsync: Fsync = "none",
    atomic: bool = False,
    on_error: Literal["raise", "collect"] = "raise",
) -> WriteReceipt:
    """Do what ``calve.write_files`` does. ``entries`` may be an asynchronous iterable of pairs too."""
    handle = handle_of(None)
    if not isinstance(entries, AsyncIterable):
        pairs = _files.pairs_of(entries)
    with _files.failures():
        session = _files.write_session(root, concurrency, mode, flag, mkdir, fsync, atomic, on_error, handle)
        try:
            if isinstance(entries, AsyncIterable):
                batch, index = _files.Batch(), 0
                async for entry in entries:
                    if batch.add(index, entry):
                        await _call(handle, session.write, batch.paths, batch.contents)
                        batch = _files.Batch()
                    index += 1
                if batch.paths:
                    await _call(handle, session.write, batch.paths, batch.contents)
            else:
                for paths, contents in _files.batches(pairs, handle):
                    await _call(handle, session.write, paths, contents)
            return _files.write_receipt(await _call(handle, session.finish))
        finally:
            session.close()


@overload
def read_files(
    paths: Union[Iterable[Name], AsyncIterable[Name]],
    *,
    concurrency: Optional[int] = None,
    on_error: Literal["raise"] = "raise",
) -> AsyncIterator[tuple[Name, bytes]]: ...
@overload
def read_files(
    paths: Union[Iterable[Name], AsyncIterable[Name]],
    *,
    concurrency: Optional[int] = None,
    on_error: Literal["collect"],
) -> AsyncIterator[tuple[Name, Union[bytes, CalveError]]]: ...
def read_files(
    paths: Union[Iterable[Name], AsyncIterable[Name]],
    *,
    concurrency: Optional[int] = None,
    on_error: Literal["raise", "collect"] = "raise",
) -> AsyncIterator[tuple[Name, Any]]:
    """Do what ``calve.read_files`` does, for ``async for``. ``paths`` may be an asynchronous iterable too."""
    collects, threads = _files.collecting(on_error), thread_count(concurrency, "concurrency")
    if isinstance(paths, (str, bytes, bytearray, memoryview)) or not isinstance(paths, (Iterable, AsyncIterable)):
        raise TypeError(f"paths must be an iterable of paths, not {type(paths).__name__}")
    return _read(paths, threads, collects)


async def _read(paths: Any, threads: Optional[int], collects: bool) -> AsyncIterator[tuple[Any, Any]]:
    handle = handle_of(None)
    wanted: list[tuple[Any, bytes]] = []
    index = 0
    async for path in paths if isinstance(paths, AsyncIterable) else _each(paths):
        wanted.append((path, path_bytes(path, f"paths[{index}]")))
        index += 1
        if len(wanted) == _files.BATCH_PATHS:
            for pair in await _pairs(wanted, threads, collects, handle):
                yield pair
    while wanted:
        for pair in await _pairs(wanted, threads, collects, handle):
            yield pair


async def _each(paths: Iterable[Any]) -> AsyncIterator[Any]:
    for path in paths:
        yield path


async def _pairs(wanted: list[tuple[Any, bytes]], threads: Optional[int], collects: bool, handle: _native.Handle) -> Iterable[Any]:
    """Read some of the wanted files, and remove them from the list."""
    with _files.failures():
        read = await _call(handle, _native.read_files, [name for _, name in wanted], threads, handle)
    begun = wanted[: len(read)]
    del wanted[: len(read)]
    return _files.pairs_read(begun, read, collects)


async def _run(operation: Operation) -> Any:
    loop = asyncio.get_running_loop()
    work = None
    with operation.settled():
        try:
            work = operation.begin()
            while not await loop.run_in_executor(None, work.wait):
                operation.report(work.progress())
        except BaseException:
            operation.handle.cancel()
            if work is not None:
                await _ended(work)
            raise
        return operation.receipt(work)


async def _ended(work: _native.Work) -> None:
    """Wait for the end, even if somebody cancels the task again."""
    while True:
        try:
            if await asyncio.get_running_loop().run_in_executor(None, work.wait):
                return
        except asyncio.CancelledError:
            continue


async def _call(handle: _native.Handle, function: Callable[..., Any], *given: Any) -> Any:
    """Call it on a thread. If the task is cancelled, stop the call and wait for its end."""
    future = asyncio.get_running_loop().run_in_executor(None, function, *given)
    cancelled = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            handle.cancel()
            cancelled = error
    if cancelled is not None:
        # Nobody asks what came of it.
        future.exception()
        raise cancelled
    return future.result()
