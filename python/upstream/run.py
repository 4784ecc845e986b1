"""Run the standard library's tests of ``shutil`` and ``pathlib`` against ``calve.shutil``.

usage: run.py DIRECTORY      DIRECTORY: has test_shutil.py and test_pathlib.py of this version of Python

A test that fails with the standard library's own functions says nothing here, since it is of another machine: it is named and left out.
"""

import importlib.util
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

INTERNALS = {
    "test_shutil.TestCopyTree.test_copytree_winerror": "puts another os.chmod in place, which native code does not call",
    "test_shutil.TestRmTree.test_rmtree_uses_safe_fd_version_if_available": "expects a call of a private function of the module",
    "test_shutil.TestZeroCopySendfile.test_blocksize_arg": "expects a call of os.sendfile",
    "test_shutil.TestZeroCopySendfile.test_unhandled_exception": "expects a call of os.sendfile",
}
"""Tests of how the standard library does it, rather than of what comes of it. The documentation lists them."""

NAMES = ("copy", "copy2", "copyfile", "copytree", "move", "rmtree")


def run(suite):
    """Return the names of the tests that ran, and the report of each that failed."""
    result = unittest.TestResult()
    suite.run(result)
    # A test in a subtest has the name of its test.
    bad = {getattr(test, "test_case", test).id(): report for test, report in result.failures + result.errors}
    return result, bad


def tests(directory):
    loaded = unittest.TestSuite()
    for name in ("test_shutil", "test_pathlib"):
        spec = importlib.util.spec_from_file_location(name, directory / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        loaded.addTests(unittest.defaultTestLoader.loadTestsFromModule(module))
    return loaded


def main():
    directory = Path(sys.argv[1]).resolve()
    os.chdir(tempfile.mkdtemp())
    before = {name: getattr(shutil, name) for name in NAMES}
    _, foreign = run(tests(directory))
    import calve.shutil

    for name in NAMES:
        setattr(shutil, name, getattr(calve.shutil, name))
    result, bad = run(tests(directory))
    for name, function in before.items():
        setattr(shutil, name, function)
    for name in sorted(bad.keys() & foreign.keys()):
        print(f"{name}: fails with the standard library's own functions too")
    for name, reason in INTERNALS.items():
        print(f"{name}: {reason}")
    failed = sorted(bad.keys() - foreign.keys() - INTERNALS.keys())
    for name in sorted(INTERNALS.keys() - bad.keys()):
        failed.append(name)
        bad[name] = "it passes now, and must not be listed"
    for name in failed:
        print(f"{name}: FAILED\n{bad[name]}")
    left_out = len(result.skipped) + len(bad) - len(failed)
    print(f"{result.testsRun - len(bad) - len(result.skipped)} passed, {len(failed)} failed, {left_out} skipped")
    shutil.rmtree(os.getcwd())
    return 1 if failed or result.testsRun < 200 else 0


sys.exit(main())
