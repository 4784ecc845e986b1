"""Against the installed wheel: trees."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import calve

SLOW = dict(strategy="copy", verify=True, threads=1)


def tree(root: Path, directories: int = 3, files: int = 4) -> Path:
    for d in range(directories):
        (root / f"d{d}").mkdir(parents=True)
        for f in range(files):
            (root / f"d{d}" / f"f{f}").write_text(f"contents {d} {f}")
    return root


def names(directory: Path) -> list:
    return sorted(os.listdir(directory))


def until(done):
    """Another process sees to it: one of the lowest priority, which gets little of a busy machine."""
    for _ in range(12_000):
        if done():
            return
        time.sleep(0.025)
    assert done(), "not within five minutes"


def in_time(attempt):
    """Calls `attempt` until it says that it came in time.

    What it wants to be in the middle of may have ended already, where the processors are busy with something else.
    """
    assert any(attempt() for _ in range(40)), "it had always ended before"


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """With SLOW, what takes long enough to be in the middle of. It is made once, for that can take long too."""
    return tree(tmp_path_factory.mktemp("large") / "src", 60, 100)


def nothing_left(src: Path, folder: Path) -> bool:
    """Whether nothing is in `folder`. Otherwise the clone was complete before something could end it, and is taken away."""
    if not names(folder):
        return True
    assert names(folder) == ["dst"]
    subprocess.run(["diff", "-r", src, folder / "dst"], check=True)
    shutil.rmtree(folder / "dst")
    return False


def until_begun(folder: Path, child: "subprocess.Popen[str]"):
    """Something is being made, or has been."""
    while not names(folder) and child.poll() is None:
        time.sleep(0.001)


def test_a_tree_is_cloned_and_independent(tmp_path):
    src = tree(tmp_path / "src")
    receipt = calve.clone_tree(src, str(tmp_path / "dst"))
    assert receipt["schema"] == "calve.clone/1" and receipt["entries"]["files"] == 12
    subprocess.run(["diff", "-r", src, tmp_path / "dst"], check=True)
    (tmp_path / "dst/d0/f0").write_text("changed")
    assert (src / "d0/f0").read_text() == "contents 0 0"
    calve.clone_tree(os.fsencode(src), os.fsencode(tmp_path / "dst2"), exclude="d1", strategy="copy", verify=True)
    assert names(tmp_path / "dst2") == ["d0", "d2"]
    calve.clone_tree(src, tmp_path / "dst3", exclude=["d*", "!d1"])
    assert names(tmp_path / "dst3") == ["d1"]
    assert calve.clone_file(src / "d0/f0", tmp_path / "file")["entries"]["files"] == 1
    seen = []
    options = dict(replace=True, strategy="copy", require=[], sync=True, verify=True, on_progress=lambda *done: seen.append(done))
    assert calve.clone_file(src / "d1/f1", tmp_path / "file", **options)["strategy"] == "copy"
    assert (tmp_path / "file").read_text() == "contents 1 1" and seen[0] == (0, 0)


def test_a_source_that_nobody_writes_to_is_stable_where_the_file_system_can_tell(tmp_path):
    src = tree(tmp_path / "src")
    file_system = calve.probe(src)["src"]["file_system"]
    if file_system in ("ext4", "xfs", "btrfs"):
        calve.clone_tree(src, tmp_path / "dst", require="stable", verify=True)
        calve.clone_file(src / "d0/f0", tmp_path / "file", require=["stable"])
        subprocess.run(["diff", "-r", src, tmp_path / "dst"], check=True)
        assert (tmp_path / "file").read_text() == "contents 0 0"
        return
    try:
        calve.clone_tree(src, tmp_path / "dst", require="stable")
    except calve.CalveError as refused:
        assert refused.code == "ERR_CALVE_REQUIREMENT_REFUSED", file_system


def test_names_need_not_be_utf8(tmp_path):
    src = os.fsencode(tmp_path) + b"/a\xff"
    os.mkdir(src)
    calve.clone_tree(src, src + b"2")
    assert os.path.isdir(src + b"2")
    with pytest.raises(calve.CalveExists) as caught:
        calve.clone_tree(src, src + b"2")
    assert os.fsencode(caught.value.filename) == src + b"2"


def test_a_probe_says_in_words_what_would_help(tmp_path):
    (tmp_path / "src").mkdir()
    remedies = [offer["remedy"] for offer in calve.probe(tmp_path / "src")["strategies"]]
    assert any(remedies) and all(" " in remedy for remedy in remedies if remedy), remedies


def test_errors_are_those_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        calve.clone_tree(tmp_path / "none", tmp_path / "dst")
    assert isinstance(caught.value, calve.CalveError)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(tmp_path / "none"))
    assert caught.value.hint and caught.value.code == "ERR_CALVE_MISSING"
    src = tree(tmp_path / "src")
    with pytest.raises(IsADirectoryError) as caught:
        calve.clone_file(src, tmp_path / "dst")
    assert isinstance(caught.value, calve.CalveIsADirectory) and caught.value.code == "ERR_CALVE_IS_A_DIRECTORY"
    assert caught.value.errno == errno.EISDIR and "a file is needed" in caught.value.hint
    with pytest.raises(NotADirectoryError) as caught:
        calve.clone_tree(src, src / "d0/f0/dst")
    assert isinstance(caught.value, calve.CalveNotADirectory) and caught.value.code == "ERR_CALVE_NOT_A_DIRECTORY"
    with pytest.raises(FileNotFoundError) as caught:
        calve.clone_tree(src, tmp_path / "none/dst")
    hint = f"create it first: mkdir -p {tmp_path}/none"
    assert (caught.value.code, caught.value.hint) == ("ERR_CALVE_PARENT_MISSING", hint)
    # The program's options by the names that they have here.
    with pytest.raises(calve.CalveError, match="the requirement `instant` cannot be met here") as caught:
        calve.clone_file(src / "d0/f0", tmp_path / "dst", require="instant")
    assert "call `probe(src, dst)`" in caught.value.hint
    with pytest.raises(FileExistsError) as caught:
        calve.clone_file(src / "d0/f0", src / "d0/f1")
    assert "`replace` swaps the clone in" in caught.value.hint
    with pytest.raises(calve.CalveError) as caught:
        calve.clone_tree(src, tmp_path / "dst", strategy="snapshot")
    assert caught.value.refused[0]["strategy"] == "snapshot"
    made = calve.CalveError("x")
    assert (str(made), list(made.refused), made.hint) == ("x", [], None)
    with pytest.raises(PermissionError):
        calve.remove_tree("/")
    assert names(tmp_path) == ["src"]


def test_wrong_arguments(tmp_path):
    async def nobody_awaits(entries, size):
        pass

    for call, name in [
        (lambda: calve.clone_tree(1, "b"), "src"),
        (lambda: calve.clone_tree("a", None), "dst"),
        (lambda: calve.clone_tree("a", "b", threads="2"), "threads"),
        (lambda: calve.clone_tree("a", "b", require=[1]), "require"),
        (lambda: calve.clone_tree("a", "b", require=1), "require"),
        (lambda: calve.clone_tree("a", "b", exclude=1), "exclude"),
        (lambda: calve.clone_tree("a", "b", strategy=1), "strategy"),
        (lambda: calve.clone_tree("a", "b", replace="yes"), "replace"),
        (lambda: calve.clone_tree("a", "b", one_file_system=1), "one_file_system"),
        (lambda: calve.clone_tree("a", "b", sync=1), "sync"),
        (lambda: calve.clone_tree("a", "b", verify=None), "verify"),
        (lambda: calve.clone_file("a", 2), "dst"),
        (lambda: calve.clone_file("a", "b", verify=1), "verify"),
        (lambda: calve.clone_file("a", "b", strategy=2), "strategy"),
        (lambda: calve.clone_file("a", "b", on_progress=2), "on_progress"),
        (lambda: calve.remove_tree("a", cancellation=2), "cancellation"),
        (lambda: calve.remove_tree("a", on_progress=2), "on_progress"),
        (lambda: calve.probe("a", 1), "dst"),
        (lambda: calve.remove_tree("a", wait="yes"), "wait"),
        (lambda: calve.probe(1), "src"),
        (lambda: calve.clone_tree("a", "b", on_progress=1), "on_progress"),
        (lambda: calve.clone_tree("a", "b", on_progress=nobody_awaits), "on_progress"),
        (lambda: calve.remove_tree("a", force=1), "force"),
        (lambda: calve.clone_tree("a", "b", cancellation=True), "cancellation"),
        (lambda: calve.remove_tree(b""[0:0] or 1.5), "path"),
    ]:
        with pytest.raises(TypeError, match=name):
            call()
    for call, name in [
        (lambda: calve.clone_tree("", "b"), "src"),
        (lambda: calve.clone_tree("a\0", "b"), "src"),
        (lambda: calve.clone_tree("a", "b", threads=0), "threads"),
        (lambda: calve.clone_tree("a", "b", strategy="magic"), "strategy"),
        (lambda: calve.clone_tree("a", "b", require="fast"), "require"),
        # A lone surrogate that os.fsdecode never makes.
        (lambda: calve.clone_tree("a\ud800", "b"), "src"),
    ]:
        with pytest.raises(ValueError, match=name):
            call()


def test_replacing_and_removing(tmp_path):
    src = tree(tmp_path / "src", 1)
    tree(tmp_path / "dst", 4)
    calve.clone_tree(src, tmp_path / "dst", replace=True)
    assert names(tmp_path / "dst") == ["d0"]
    until(lambda: names(tmp_path) == ["dst", "src"])
    assert calve.remove_tree(tmp_path / "dst")["trash"]
    until(lambda: names(tmp_path) == ["src"])
    assert calve.remove_tree(src, wait=True)["deleted_entries"] == 6
    with pytest.raises(FileNotFoundError):
        calve.remove_tree(src)
    removed = calve.remove_tree(src, force=True)
    assert (removed["path"], removed["trash"], removed["deleted_entries"]) == (str(src), None, 0)
    assert calve.remove_tree(tree(src, 1), force=True)["trash"]
    assert calve.remove_tree(os.fsencode(tmp_path) + b"/\xff", force=True)["path"].keys() == {"bytes_base64"}
    until(lambda: not names(tmp_path))


def test_of_those_who_remove_one_tree_at_once_one_does_and_the_others_miss_it(tmp_path):
    for round in range(20):
        tree(tmp_path / "src", 2, 2)
        begin, outcomes = threading.Barrier(4), []

        def remove():
            begin.wait()
            try:
                outcomes.append(calve.remove_tree(tmp_path / "src", wait=round % 2 == 0)["path"])
            except FileNotFoundError as error:
                outcomes.append(error.code)

        threads = [threading.Thread(target=remove) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == sorted([str(tmp_path / "src")] + ["ERR_CALVE_MISSING"] * 3)
    until(lambda: not names(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the children of a process this way")
def test_no_zombies_are_left(tmp_path):
    def children(state):
        found = set()
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] in state and int(fields[1]) == os.getpid():
                found.add(process)
        return found

    for n in range(4):
        calve.remove_tree(tree(tmp_path / f"{n}", 1, 1))
    until(lambda: not names(tmp_path) and not children("RSD"))
    before = children("Z")
    calve.remove_tree(tree(tmp_path / "last", 1, 1))
    assert not before & children("RSDZ")
    until(lambda: not names(tmp_path))


def test_probe(tmp_path):
    answer = calve.probe(tmp_path)
    assert any(one["strategy"] == "copy" and one["available"] for one in answer["strategies"])


def test_progress_and_what_it_raises(tmp_path, large):
    seen = []
    calve.clone_tree(large, tmp_path / "dst", on_progress=lambda entries, size: seen.append(entries))
    assert seen[0] == 0 and seen == sorted(seen)

    class Enough(Exception):
        pass

    def enough(entries, size):
        if entries >= least:
            raise Enough

    for least in (0, 100):
        with pytest.raises(Enough):
            calve.clone_tree(large, tmp_path / "dst2", on_progress=enough, **SLOW)
        assert names(tmp_path) == ["dst"]


def test_a_callback_that_raises_ends_also_a_clone_that_takes_no_time(tmp_path):
    src = tree(tmp_path / "src", 1, 1)

    def enough(entries, size):
        raise RuntimeError("no more")

    for call in (
        lambda: calve.clone_tree(src, tmp_path / "dst", on_progress=enough),
        lambda: calve.clone_file(src / "d0/f0", tmp_path / "dst", on_progress=enough),
        lambda: calve.remove_tree(src, on_progress=enough),
        lambda: calve.remove_tree(src, wait=True, on_progress=enough),
    ):
        with pytest.raises(RuntimeError, match="no more"):
            call()
    assert names(tmp_path) == ["src"] and (src / "d0/f0").read_text() == "contents 0 0"


def test_cancelled_before_during_and_after(tmp_path, large):
    before = calve.Cancellation()
    before.cancel()
    with pytest.raises(calve.Cancelled) as caught:
        calve.clone_tree(large, tmp_path / "dst", cancellation=before)
    assert (caught.value.errno, caught.value.code) == (errno.ECANCELED, "ERR_CALVE_ABORTED")

    def attempt():
        during = calve.Cancellation()
        timer = threading.Timer(0.01, during.cancel)
        timer.start()
        try:
            calve.clone_tree(large, tmp_path / "dst", cancellation=during, **SLOW)
        except calve.Cancelled:
            assert names(tmp_path) == [] and during.cancelled
            return True
        timer.join()
        return nothing_left(large, tmp_path)

    in_time(attempt)
    after = calve.Cancellation()
    calve.clone_tree(large, tmp_path / "dst", cancellation=after)
    after.cancel()
    assert names(tmp_path) == ["dst"]


def test_what_is_not_there(tmp_path):
    src = tree(tmp_path / "src", 1, 1)
    for call, path in [
        (lambda: calve.clone_tree(tmp_path / "none", tmp_path / "dst"), "none"),
        (lambda: calve.clone_tree(src, tmp_path / "none/dst"), "none"),
        (lambda: calve.clone_file(tmp_path / "none", tmp_path / "dst"), "none"),
        (lambda: calve.probe(tmp_path / "none"), "none"),
    ]:
        with pytest.raises(FileNotFoundError) as caught:
            call()
        assert caught.value.filename == str(tmp_path / path)
    assert names(tmp_path) == ["src"]


def test_several_threads_clone_at_once(tmp_path):
    src = tree(tmp_path / "src", 5, 5)
    threads = [threading.Thread(target=calve.clone_tree, args=(src, tmp_path / f"dst{n}")) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(6):
        subprocess.run(["diff", "-r", src, tmp_path / f"dst{n}"], check=True)
    assert len(names(tmp_path)) == 7


def test_what_is_left_of_a_removal_that_was_ended_is_deleted(tmp_path):
    def enough(entries, size):
        if not (tmp_path / "a").exists():
            raise RuntimeError("no more")

    def cancel_begun(switch, over):
        while (tmp_path / "a").exists() and not over.is_set():
            pass
        switch.cancel()

    src = tmp_path / "src"
    # Fast machines delete 6,000 files before the first progress is told.
    tree(src, 300, 100)
    before = calve.Cancellation()
    before.cancel()
    calve.clone_tree(src, tmp_path / "a")
    with pytest.raises(calve.Cancelled):
        calve.remove_tree(tmp_path / "a", cancellation=before)
    assert len(names(tmp_path / "a")) == 300

    def attempt():
        if not (tmp_path / "a").exists():
            calve.clone_tree(src, tmp_path / "a")
        try:
            calve.remove_tree(tmp_path / "a", wait=True, on_progress=enough)
        except RuntimeError:
            return True
        return False

    in_time(attempt)
    until(lambda: names(tmp_path) == ["src"])

    def cancelled():
        calve.clone_tree(src, tmp_path / "a")
        switch, over = calve.Cancellation(), threading.Event()
        cancelling = threading.Thread(target=cancel_begun, args=(switch, over))
        cancelling.start()
        try:
            calve.remove_tree(tmp_path / "a", wait=True, cancellation=switch)
        except calve.Cancelled:
            return True
        finally:
            over.set()
            cancelling.join()
        return False

    in_time(cancelled)
    until(lambda: names(tmp_path) == ["src"])


def test_other_threads_run_meanwhile(tmp_path, large):
    def attempt():
        turns, begins, ended = 0, threading.Event(), threading.Event()

        def work():
            nonlocal turns
            begins.wait()
            while not ended.is_set():
                turns += 1
                time.sleep(0.001)

        thread = threading.Thread(target=work)
        thread.start()
        begins.set()
        calve.clone_tree(large, tmp_path / "dst", **SLOW)
        ended.set()
        thread.join()
        nothing_left(large, tmp_path)
        # Without the GIL it has one or two.
        return turns >= 5

    in_time(attempt)


def test_ctrl_c_stops_a_clone_and_leaves_nothing(tmp_path, large):
    # Who starts the tests may have it ignored, which is inherited.
    code = """if True:
        import calve, signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)
        calve.clone_tree(sys.argv[1], sys.argv[2], strategy="copy", verify=True, threads=1)"""

    def attempt():
        command = [sys.executable, "-c", code, large, tmp_path / "dst"]
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        until_begun(tmp_path, child)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate()
        if nothing_left(large, tmp_path):
            assert "KeyboardInterrupt" in errors and child.returncode != 0, errors
            return True
        return False

    in_time(attempt)


def test_an_interpreter_that_exits_during_a_clone_leaves_nothing(tmp_path, large):
    code = """if True:
        import calve, sys, threading, time
        go = dict(strategy="copy", verify=True, threads=1)
        threading.Thread(target=calve.clone_tree, args=sys.argv[1:3], kwargs=go, daemon=True).start()
        time.sleep(0.05)
        sys.exit(7)"""

    def attempt():
        done = subprocess.run([sys.executable, "-c", code, large, tmp_path / "dst"], timeout=300)
        assert done.returncode == 7
        return nothing_left(large, tmp_path)

    in_time(attempt)


def test_a_thread_that_begins_when_the_interpreter_exits_is_too_late(tmp_path):
    src = tree(tmp_path / "src")
    code = """if True:
        import atexit, sys, threading
        begin, ended = threading.Event(), threading.Event()

        def clone():
            begin.wait()
            try:
                calve.clone_tree(sys.argv[1], sys.argv[2])
            except calve.Cancelled:
                print("cancelled")
            ended.set()

        def at_exit():
            begin.set()
            ended.wait()
            # This is waited for.
            calve.remove_tree(sys.argv[1], wait=True)

        # Before that of calve, so that it is called later.
        atexit.register(at_exit)
        import calve
        threading.Thread(target=clone, daemon=True).start()"""
    done = subprocess.run([sys.executable, "-c", code, src, tmp_path / "dst"], stdout=subprocess.PIPE, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "cancelled\n")
    assert names(tmp_path) == []


def test_a_disk_that_fills_up_during_clones(tmp_path, small_disk):
    src = tmp_path / "src"
    calve.write_files(src, {f"{n}": bytes([n]) * 100_000 for n in range(60)}, mkdir=True)
    # Room for one, so that each finds enough of it at the beginning, but not for all three.
    disk = small_disk("size=10m")
    complete, failed = [], []

    def clone(name):
        try:
            calve.clone_tree(src, disk / name, threads=1)
            complete.append(name)
        except calve.CalveError as error:
            failed.append(error)

    threads = [threading.Thread(target=clone, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failed) >= 2
    assert all(error.errno == errno.ENOSPC and "space" in error.hint for error in failed)
    assert names(disk) == complete


def test_lone_surrogates_and_undecodable_names(tmp_path):
    name = "a\udcff"
    os.mkdir(os.fsencode(tmp_path / name))
    calve.clone_tree(tmp_path / name, tmp_path / "b")
    with pytest.raises(ValueError):
        calve.clone_tree("a\ud800", tmp_path / "c")
    assert names(tmp_path) == sorted([name, "b"])
