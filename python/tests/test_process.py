"""Against the installed wheel: what it does to the process, and which processes it starts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import calve
from calve import _program
from test_trees import names, tree, until

# How often each of them. CALVE_ROUNDS multiplies it, as everything that the tests leave to chance.
RUNS = max(1, round(20 * float(os.environ.get("CALVE_ROUNDS", "0.1"))))

ENDLESS = """if True:
    import calve, itertools, os, sys, threading, time
    what, root, delay = sys.argv[1], sys.argv[2], float(sys.argv[3])
    src, go = os.path.join(root, "src"), dict(strategy="copy", threads=1)

    def clone_tree():
        for n in itertools.count():
            calve.clone_tree(src, os.path.join(root, f"dst{n}"), on_progress=lambda entries, size: None, **go)

    def write_files():
        calve.write_files(os.path.join(root, "out"), ((f"f{n % 500}", bytes(5000)) for n in itertools.count()), mkdir=True, flag="w")

    def read_files():
        for _ in calve.read_files(itertools.repeat(os.path.join(src, "d0", "f0"))):
            pass

    def remove_tree():
        for n in itertools.count():
            calve.clone_tree(src, os.path.join(root, f"dst{n}"), **go)
            calve.remove_tree(os.path.join(root, f"dst{n}"), wait=True)

    def again_and_again():
        try:
            begun.set()
            globals()[what]()
        except calve.Cancelled:
            pass

    begun = threading.Event()
    for _ in range(3):
        threading.Thread(target=again_and_again if what != "remove_tree" or _ == 0 else read_files, daemon=True).start()
    begun.wait()
    # Another moment each time.
    time.sleep(delay)
    sys.exit(7)"""


@pytest.mark.parametrize("what", ["clone_tree", "write_files", "read_files", "remove_tree"])
def test_an_interpreter_that_ends_around_native_threads_does_not_crash(tmp_path, what):
    tree(tmp_path / "src", 10, 20)
    for run in range(RUNS):
        command = [sys.executable, "-c", ENDLESS, what, tmp_path, f"{run % 40 / 400}"]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=600)
        assert done.returncode == 7, done.stderr
        for name in names(tmp_path):
            # Killed threads leave nothing behind that somebody has to look after.
            assert not name.startswith(".calve-staging"), names(tmp_path)

        def only_src():
            # A program that the killed process has started may be deleting the same.
            for name in set(names(tmp_path)) - {"src"}:
                shutil.rmtree(tmp_path / name, ignore_errors=True)
            return names(tmp_path) == ["src"]

        until(only_src)


def test_an_interpreter_that_ends_while_a_thread_is_in_a_callback_does_not_crash(tmp_path):
    """The thread comes back for the GIL when there is none any more, and is ended where it is."""
    tree(tmp_path / "src", 1, 1)
    code = """if True:
        import calve, sys, threading, time
        inside = threading.Event()

        def often(entries, size):
            inside.set()
            while True:
                time.sleep(0.0005)

        def clone():
            calve.clone_tree(sys.argv[1] + "/src", sys.argv[1] + "/dst", on_progress=often)

        threading.Thread(target=clone, daemon=True).start()
        inside.wait()
        sys.exit(7)"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code, tmp_path], stderr=subprocess.PIPE, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (7, "")
    assert names(tmp_path) == ["src"]


def test_python_itself_is_never_started(tmp_path, monkeypatch):
    """In an application that is one file it would be the application."""
    fake = tmp_path / "application"
    fake.write_text(f"#!/bin/sh\necho started >>{tmp_path}/started\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    calve.remove_tree(tree(tmp_path / "a"))
    until(lambda: names(tmp_path) == ["application"])
    monkeypatch.setattr(sys, "executable", None)
    calve.remove_tree(tree(tmp_path / "a"))
    until(lambda: names(tmp_path) == ["application"])


def test_without_the_program_a_thread_deletes(tmp_path, monkeypatch):
    monkeypatch.setattr(_program, "_HERE", str(tmp_path))
    assert _program.program() is None
    calve.remove_tree(tree(tmp_path / "a", 5, 50))
    until(lambda: not names(tmp_path))
    # A program that cannot be started is none.
    (tmp_path / "_program").mkdir()
    (tmp_path / "_program/calve").write_bytes(b"\x7fELF")
    (tmp_path / "_program/calve").chmod(0o755)
    assert _program.program()
    calve.remove_tree(tree(tmp_path / "a", 5, 50))
    until(lambda: names(tmp_path) == ["_program"])


def test_what_an_ended_process_has_not_deleted_the_next_removal_does(tmp_path):
    code = """if True:
        import calve, os, sys
        from calve import _program
        _program._HERE = "/none"
        calve.remove_tree(sys.argv[1])
        os._exit(7)"""
    done = subprocess.run([sys.executable, "-c", code, tree(tmp_path / "a", 60, 100)])
    assert done.returncode == 7 and not (tmp_path / "a").exists()
    calve.remove_tree(tree(tmp_path / "b", 1, 1))
    until(lambda: not names(tmp_path))


def test_the_program_is_started_by_its_module_and_by_its_name(tmp_path):
    tree(tmp_path / "src")
    scripts = Path(sys.executable).parent
    for number, command in enumerate(([sys.executable, "-m", "calve"], [scripts / "calve"])):
        said = subprocess.run([*command, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        assert said == f"calve {calve.__version__}\n"
        subprocess.run([*command, "cp", "-q", tmp_path / "src", tmp_path / f"dst{number}"], check=True)
        assert names(tmp_path / f"dst{number}") == names(tmp_path / "src")
        missing = subprocess.run([*command, "cp", tmp_path / "none", tmp_path / "x"], stderr=subprocess.PIPE, text=True)
        assert missing.returncode == 1 and "does not exist" in missing.stderr


def test_an_interpreter_without_the_gil_is_told_why():
    """Whether it is on can only be put into the mouth of an interpreter that has it."""
    code = """if True:
        import sys
        sys._is_gil_enabled = lambda: False
        try:
            import calve
        except ImportError as error:
            assert error.name == "calve" and "not tested without the GIL" in str(error), error
            assert "PYTHON_GIL=1" in str(error) and "calve._native" not in sys.modules
        else:
            raise AssertionError("imported")
        sys._is_gil_enabled = lambda: True
        import calve"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_a_subinterpreter_is_told_why(tmp_path):
    code = """if True:
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        import sys
        import calve
        inner = '''if True:
            import sys
            sys.path[:] = %r
            try:
                import calve
            except ImportError as error:
                open(%r, "w").write(str(error))
        ''' % (sys.path, sys.argv[1])
        interpreters.run_string(interpreters.create(), inner)"""
    subprocess.run([sys.executable, "-c", code, tmp_path / "said"], check=True, timeout=300)
    assert "works in the main interpreter of a process only" in (tmp_path / "said").read_text(encoding="utf-8")
