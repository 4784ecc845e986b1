"""Systems that Calve does not run on: the package loads, its drop-in is the standard library, and all else says where it runs."""

import subprocess
import sys

import pytest

import calve
import calve.shutil

# As on such a system: nothing native can be loaded, and there is no module of Unix alone.
BEGIN = """
import asyncio, errno, os, shutil, sys
sys.platform = PLATFORM
class Elsewhere:
    def find_spec(self, name, path=None, target=None):
        if name in ("calve._native", "fcntl"):
            raise ImportError(f"{name} is not here")
sys.modules.pop("fcntl", None)
sys.meta_path.insert(0, Elsewhere())
"""

LOADS = """
import calve, calve.aio, calve.db, calve.shutil
print(calve.is_supported(), calve.__version__)
print([name for name in dir(shutil) if not name.startswith("__") and getattr(calve.shutil, name) is not getattr(shutil, name)])
"""

RAISES = """
import calve, calve.aio, calve.db
async def listed(pairs):
    return [pair async for pair in pairs]
calls = [
    lambda: calve.clone_tree("a", "b"), lambda: calve.clone_file("a", "b"), lambda: calve.remove_tree("a", wait=True, force=True),
    lambda: calve.probe("a"), lambda: calve.write_files("a", {"b": "c"}), lambda: calve.read_files(["a"]), lambda: calve.Cancellation(),
    lambda: asyncio.run(calve.aio.clone_tree("a", "b")), lambda: asyncio.run(calve.aio.clone_file("a", "b")),
    lambda: asyncio.run(calve.aio.remove_tree("a", force=True)), lambda: asyncio.run(calve.aio.probe("a")),
    lambda: asyncio.run(calve.aio.write_files("a", {"b": "c"})), lambda: asyncio.run(listed(calve.aio.read_files(["a"]))),
    lambda: calve.db.start("shop"),
]
for number, call in enumerate(calls):
    try:
        print(number, call())
    except calve.CalveError as error:
        if (error.code, error.errno) != ("ERR_CALVE_UNSUPPORTED", errno.ENOTSUP) or "WSL2" not in str(error):
            print(number, repr(error))
"""


def run(platform, script):
    begin = BEGIN.replace("PLATFORM", repr(platform))
    done = subprocess.run([sys.executable, "-c", begin + script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("platform", ["win32", "cygwin", "freebsd14"])
def test_it_loads_and_the_drop_in_is_the_standard_library(platform):
    assert run(platform, LOADS) == (0, f"False {calve.__version__}\n[]\n", "")


@pytest.mark.parametrize("platform", ["win32", "cygwin", "freebsd14"])
def test_everything_else_names_wsl(platform):
    assert run(platform, RAISES) == (0, "", "")


def test_the_program_names_wsl():
    code, out, err = run("win32", "import runpy; runpy.run_module('calve', run_name='__main__')")
    assert (code, out) == (1, "")
    assert err == "calve: calve does not run on win32\nhint: it runs on Linux and macOS; on Windows, use WSL2\n"


def test_here_it_runs():
    assert calve.is_supported()
    assert calve.shutil.copytree is not __import__("shutil").copytree
