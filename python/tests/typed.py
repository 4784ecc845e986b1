"""Never run: what mypy and pyright must accept as strictly as they can, and what they make of it."""

import array
from pathlib import Path
from typing import Any, AsyncIterator, Iterator, Union

import calve
import calve.aio
import calve.db

names: dict[str, str] = {"a": "x"}
paths: dict[Path, bytes] = {Path("a"): b"x"}
mixed: dict[Union[str, Path], Union[str, bytes]] = {"a": b"x"}
numbers: "dict[bytes, array.array[int]]" = {b"a": array.array("i")}


def writes(pairs: Iterator[tuple[str, memoryview]]) -> list[calve.CalveError]:
    calve.write_files("out", names)
    calve.write_files("out", paths)
    calve.write_files("out", mixed, flag="wx")
    calve.write_files("out", numbers, fsync="each")
    calve.write_files("out", {"a": "x", "b": b"y", "c": bytearray()}, mkdir=True)
    calve.write_files("out", pairs)
    return [failure["error"] for failure in calve.write_files("out", [(Path("a"), "x")], on_error="collect")["failures"]]


def reads() -> tuple[list[bytes], list[Union[bytes, calve.CalveError]], list[Path]]:
    certain = [contents for _, contents in calve.read_files(["a"])]
    collected = [contents for _, contents in calve.read_files(["a"], on_error="collect")]
    return certain, collected, [path for path, _ in calve.read_files([Path("a")])]


def trees(**anything: Any) -> Union[int, str]:
    receipt: calve.CloneReceipt = calve.clone_tree("a", b"b", require=("cow",), strategy="reflink", on_progress=print)
    removed: calve.RemoveReceipt = calve.remove_tree(Path("b"), force=True)
    assert receipt["refused"][0]["reason"] and receipt["fell_back"][0]["from"] and receipt["warnings"][0].get("path")
    return receipt["bytes"]["shared"] if receipt["bytes"] else f"{removed['deleted_entries']} {calve.__version__}"


async def awaits(entries: AsyncIterator[tuple[str, str]]) -> list[bytes]:
    await calve.aio.write_files("out", entries)
    await calve.aio.write_files("out", {"a": "x", "b": b"y"})
    receipt: calve.ProbeReceipt = await calve.aio.probe("a")
    assert receipt["chosen"]
    return [contents async for _, contents in calve.aio.read_files([Path("a")])]


def servers() -> tuple[str, int, Union[str, None]]:
    with calve.db.start("shop", tcp=5432) as server:
        server.mark("filled")
        server.reset()
        server.reset(to="filled")
        return server.url, server.port, server.environment["PGHOST"]


def with_fixtures(calve_db: calve.db.Server) -> str:
    return calve_db.dsn
