"""Against the installed wheel: the functions for asyncio."""

import asyncio
import os

import pytest

import calve
import calve.aio
from test_trees import SLOW, in_time, names, nothing_left, tree, until


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return tree(tmp_path_factory.mktemp("large") / "src", 60, 100)


def test_the_same_as_without_asyncio(tmp_path):
    async def all_of_it():
        src, seen = tree(tmp_path / "src"), []
        receipt = await calve.aio.clone_tree(src, tmp_path / "dst", on_progress=lambda *done: seen.append(done))
        assert receipt["entries"]["files"] == 12 and seen[0] == (0, 0)
        assert (await calve.aio.clone_file(src / "d0/f0", tmp_path / "file"))["entries"]["files"] == 1
        assert any(one["available"] for one in (await calve.aio.probe(src))["strategies"])
        for path in ("dst", "src"):
            await calve.aio.remove_tree(tmp_path / path, wait=True)
        assert (await calve.aio.remove_tree(tmp_path / "src", force=True))["deleted_entries"] == 0
        with pytest.raises(calve.CalveMissing):
            await calve.aio.remove_tree(tmp_path / "src")
        with pytest.raises(calve.CalveMissing):
            await calve.aio.clone_tree(tmp_path / "src", tmp_path / "dst")
        with pytest.raises(TypeError, match="wait"):
            await calve.aio.remove_tree(tmp_path / "src", wait=1)
        assert names(tmp_path) == ["file"]

    asyncio.run(all_of_it())


def test_files_from_iterables_of_both_kinds(tmp_path):
    async def slowly(items):
        for item in items:
            await asyncio.sleep(0)
            yield item

    async def all_of_it():
        entries = [(f"{n}", f"contents {n}") for n in range(3000)]
        for number, given in enumerate((dict(entries), iter(entries), slowly(entries))):
            root = tmp_path / f"{number}"
            assert (await calve.aio.write_files(root, given, mkdir=True))["files"] == 3000
            paths = [root / name for name, _ in entries]
            read = [contents async for _, contents in calve.aio.read_files(slowly(paths) if number else paths)]
            assert read == [contents.encode() for _, contents in entries]
        with pytest.raises(FileExistsError) as caught:
            await calve.aio.write_files(tmp_path / "0", entries, flag="wx")
        assert caught.value.code == "ERR_CALVE_EXISTS"
        collected = [one async for _, one in calve.aio.read_files([tmp_path / "none"], on_error="collect")]
        assert isinstance(collected[0], FileNotFoundError)
        with pytest.raises(TypeError, match="paths"):
            calve.aio.read_files("a")
        with pytest.raises(TypeError, match="entries"):
            await calve.aio.write_files(tmp_path, 5)

    asyncio.run(all_of_it())


def test_a_cancelled_task_leaves_nothing(tmp_path, large):
    async def attempt():
        task = asyncio.ensure_future(calve.aio.clone_tree(large, tmp_path / "dst", **SLOW))
        while not names(tmp_path) and not task.done():
            await asyncio.sleep(0.001)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            assert names(tmp_path) == []
            return True
        return nothing_left(large, tmp_path)

    in_time(lambda: asyncio.run(attempt()))


def test_a_cancelled_task_that_writes_leaves_no_half_file(tmp_path):
    async def endless():
        n = 0
        while True:
            yield f"f{n}", bytes(20_000)
            n += 1

    async def attempt():
        task = asyncio.ensure_future(calve.aio.write_files(tmp_path, endless()))
        while not names(tmp_path):
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert all(os.path.getsize(tmp_path / name) == 20_000 for name in names(tmp_path))

    asyncio.run(attempt())


def test_the_trash_of_a_cancelled_removal_is_deleted(tmp_path, large):
    async def attempt():
        await calve.aio.clone_tree(large, tmp_path / "a")
        task = asyncio.ensure_future(calve.aio.remove_tree(tmp_path / "a", wait=True))
        while (tmp_path / "a").exists():
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return True
        return False

    in_time(lambda: asyncio.run(attempt()))
    until(lambda: not names(tmp_path))
