"""Against the installed wheel: many small files."""

import array
import errno
import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

import calve


def test_what_is_given_is_written_and_read(tmp_path):
    receipt = calve.write_files(tmp_path, {"a": "ü", "b/c": b"bytes", b"d\xff": bytearray(b"x")}, mkdir=True)
    assert (receipt["files"], receipt["directories"]) == (3, 1)
    assert (tmp_path / "a").read_text(encoding="utf-8") == "ü" and (tmp_path / "b/c").read_bytes() == b"bytes"
    entries = [(f"d{n % 30}/f{n}", f"contents {n}" * (n % 100)) for n in range(5000)]
    assert calve.write_files(tmp_path / "root", iter(entries), mkdir=True)["files"] == 5000
    paths = [tmp_path / "root" / name for name, _ in entries]
    read = list(calve.read_files(paths))
    assert [path for path, _ in read] == paths
    assert [contents.decode() for _, contents in read] == [contents for _, contents in entries]


def test_whatever_has_bytes_is_written(tmp_path):
    numbers = array.array("i", range(4))
    table = memoryview(bytes(range(12))).cast("B", (3, 4))
    every_second = memoryview(b"abcdef")[::2]
    with mmap.mmap(-1, 5) as mapped:
        mapped[:] = b"12345"
        calve.write_files(tmp_path, {"a": numbers, "b": table, "c": every_second, "d": mapped, "e": memoryview(b"")})
    expected = {"a": numbers.tobytes(), "b": bytes(range(12)), "c": b"ace", "d": b"12345", "e": b""}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == expected
    # It is not held on to.
    numbers.append(5)


def test_a_file_that_is_replaced_atomically_keeps_its_mode(tmp_path):
    (tmp_path / "script").write_text("old")
    (tmp_path / "script").chmod(0o755)
    calve.write_files(tmp_path, {"script": "new"}, atomic=True)
    assert (tmp_path / "script").stat().st_mode & 0o777 == 0o755 and (tmp_path / "script").read_text() == "new"


def test_a_refused_permission():
    """In a child, which gives up root's rights: nothing is refused to root."""
    code = """if True:
        import calve, os, sys
        os.geteuid() or os.seteuid(65534)
        try:
            calve.write_files(sys.argv[1], {"a": ""})
        except PermissionError as error:
            print(error.code, isinstance(error, calve.CalveNotPermitted))"""
    # Not below pytest's own directory, which others may not enter.
    place = tempfile.mkdtemp()
    try:
        os.chmod(place, 0o555)
        done = subprocess.run([sys.executable, "-c", code, place], stdout=subprocess.PIPE, text=True)
        assert (done.returncode, done.stdout, os.listdir(place)) == (0, "ERR_CALVE_PERMISSION True\n", [])
    finally:
        shutil.rmtree(place)


def test_nothing_is_written_outside_of_the_root(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "root/link").symlink_to(tmp_path / "outside")
    for name in ("../x", "/x", "link/x", "a/../../x"):
        with pytest.raises(calve.CalveError) as caught:
            calve.write_files(tmp_path / "root", {name: "bad"}, mkdir=True)
        assert caught.value.code == "ERR_CALVE_OUTSIDE_ROOT"
    assert os.listdir(tmp_path / "outside") == []


def test_wrong_arguments(tmp_path):
    for call, name in [
        (lambda: calve.write_files(1, {}), "root"),
        (lambda: calve.write_files(tmp_path, "text"), "entries"),
        (lambda: calve.write_files(tmp_path, ["a"]), r"entries\[0\]"),
        (lambda: calve.write_files(tmp_path, ["ab"]), r"entries\[0\]"),
        (lambda: calve.write_files(tmp_path, [{"a", "b"}]), r"entries\[0\]"),
        (lambda: calve.write_files(tmp_path, [("a", "b", "c")]), r"entries\[0\]"),
        (lambda: calve.write_files(tmp_path, None), "entries"),
        (lambda: calve.write_files(tmp_path, {}, on_error=1), "on_error"),
        (lambda: calve.write_files(tmp_path, {1: "x"}), r"entries\[0\]\[0\]"),
        (lambda: calve.write_files(tmp_path, {"a": 1}), r"entries\[0\]\[1\]"),
        (lambda: calve.write_files(tmp_path, 5), "entries"),
        (lambda: calve.write_files(tmp_path, bytearray()), "entries"),
        (lambda: calve.read_files(memoryview(b"")), "paths"),
        (lambda: calve.write_files(tmp_path, {}, flag=1), "flag"),
        (lambda: calve.write_files(tmp_path, {}, fsync=None), "fsync"),
        (lambda: calve.write_files(tmp_path, {}, mode="644"), "mode"),
        (lambda: calve.write_files(tmp_path, {}, mkdir="yes"), "mkdir"),
        (lambda: calve.write_files(tmp_path, {}, atomic=1), "atomic"),
        (lambda: calve.write_files(tmp_path, {}, concurrency=1.5), "concurrency"),
        (lambda: calve.write_files(tmp_path, {}, cancellation=object()), "cancellation"),
        (lambda: calve.read_files(5), "paths"),
        (lambda: calve.read_files([], on_error=1), "on_error"),
        (lambda: calve.read_files("a"), "paths"),
        (lambda: list(calve.read_files([1])), r"paths\[0\]"),
    ]:
        with pytest.raises(TypeError, match=name):
            call()
    for options in ({"flag": "a"}, {"fsync": "no"}, {"on_error": "no"}, {"concurrency": 65}, {"mode": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            calve.write_files(tmp_path, {}, **options)
    assert os.listdir(tmp_path) == []


def test_errors(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        calve.write_files(tmp_path / "none", {"a": ""})
    assert caught.value.code == "ERR_CALVE_MISSING"
    with pytest.raises(FileNotFoundError) as caught:
        calve.write_files(tmp_path, {"none/a": ""})
    assert (caught.value.code, caught.value.filename) == ("ERR_CALVE_PARENT_MISSING", str(tmp_path / "none"))
    (tmp_path / "directory").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        calve.write_files(tmp_path, {"directory": ""})
    assert caught.value.code == "ERR_CALVE_IS_A_DIRECTORY"
    assert (caught.value.errno, caught.value.filename) == (errno.EISDIR, str(tmp_path / "directory"))
    (tmp_path / "file").write_text("old")
    with pytest.raises(FileExistsError) as caught:
        calve.write_files(tmp_path, {"file": "new"}, flag="wx")
    assert caught.value.code == "ERR_CALVE_EXISTS"
    receipt = calve.write_files(tmp_path, [("file", ""), ("a", "1"), ("a", "2")], flag="wx", on_error="collect")
    assert [(failure["index"], failure["error"].errno) for failure in receipt["failures"]] == [(0, errno.EEXIST), (2, errno.EEXIST)]
    calve.write_files(tmp_path, [("a", "1"), ("./a", "2")])
    assert (tmp_path / "a").read_text() == "2"
    read = [contents for _, contents in calve.read_files([tmp_path / "a", tmp_path / "none"], on_error="collect")]
    assert read[0] == b"2" and isinstance(read[1], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        list(calve.read_files([tmp_path / "none"]))


def test_names_that_are_not_utf8_and_lone_surrogates(tmp_path):
    calve.write_files(tmp_path, {b"n\xff": "x", "a\udcfe": "y"})
    whole = os.fsencode(tmp_path) + b"/n\xff"
    assert list(calve.read_files([whole, tmp_path / "a\udcfe"])) == [(whole, b"x"), (tmp_path / "a\udcfe", b"y")]
    with pytest.raises(FileExistsError) as caught:
        calve.write_files(tmp_path, {b"n\xff": "z"}, flag="wx")
    assert os.fsencode(caught.value.filename) == whole
    for entries, name in [({"a\ud800": "x"}, r"entries\[0\]\[0\]"), ({"b": "\udfff"}, r"entries\[0\]\[1\]")]:
        with pytest.raises(ValueError, match=name):
            calve.write_files(tmp_path, entries)
    with pytest.raises(ValueError, match=r"paths\[0\]"):
        list(calve.read_files(["a\ud800"]))
    assert len(os.listdir(tmp_path)) == 2


def test_an_iterable_that_raises(tmp_path):
    def failing():
        for n in range(3000):
            yield f"{n}", "x"
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        calve.write_files(tmp_path, failing())

    def paths():
        (tmp_path / "0").write_text("x")
        for _ in range(600):
            yield tmp_path / "0"
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        list(calve.read_files(paths()))


def test_ctrl_c_stops_writing_and_reading(tmp_path):
    (tmp_path / "again").write_text("x")
    # Who starts the tests may have it ignored, which is inherited.
    begin = "import calve, itertools, os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); root = sys.argv[1]; "
    writes = "calve.write_files(root, ((f'f{n}', bytes(20_000)) for n in itertools.count()))"
    reads = "[os.path.exists(root + '/read') or open(root + '/read', 'x') for _ in calve.read_files(itertools.repeat(root + '/again'))]"
    for what, begun in ((reads, "read"), (writes, "f0")):
        child = subprocess.Popen([sys.executable, "-c", begin + what, tmp_path], stderr=subprocess.PIPE, text=True)
        while not (tmp_path / begun).exists() and child.poll() is None:
            time.sleep(0.005)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=300)
        assert "KeyboardInterrupt" in errors and child.returncode != 0, errors
    assert all(os.path.getsize(path) == 20_000 for path in tmp_path.glob("f*"))


def test_the_iterable_is_asked_for_more_only_as_fast_as_files_are_written(tmp_path):
    size, most, ahead = 20_000, 8 << 20, 0

    def many():
        nonlocal ahead
        for asked in range(2000):
            # Now and then, for listing them takes long.
            if asked % 50 == 0:
                ahead = max(ahead, asked - len(os.listdir(tmp_path)))
            yield f"{asked}", bytes(size)

    assert calve.write_files(tmp_path, many())["files"] == 2000
    assert ahead <= most / size + 1


def test_cancelled(tmp_path):
    switch = calve.Cancellation()

    def endless():
        n = 0
        while True:
            n += 1
            if n == 5000:
                switch.cancel()
            yield f"{n}", "x"

    with pytest.raises(calve.Cancelled):
        calve.write_files(tmp_path, endless(), cancellation=switch)
    (tmp_path / "again").write_text("x")
    switch, seen = calve.Cancellation(), 0
    with pytest.raises(calve.Cancelled):
        for _ in calve.read_files((tmp_path / "again" for _ in range(100_000)), cancellation=switch):
            seen += 1
            if seen == 700:
                switch.cancel()
    assert seen < 5000


def test_an_interpreter_that_exits_in_the_middle_leaves_no_half_file(tmp_path):
    code = """if True:
        import calve, sys, threading, time
        entries = {f"f{n}": bytes(20_000) for n in range(5000)}
        threading.Thread(target=calve.write_files, args=(sys.argv[1], entries), kwargs=dict(concurrency=2), daemon=True).start()
        time.sleep(0.03)
        sys.exit(7)"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], stderr=subprocess.PIPE, text=True, timeout=300)
    # A traceback may be cut off with the lock of stderr held, and Python 3.14 aborts then.
    assert (done.returncode, done.stderr) == (7, "")
    assert all(os.path.getsize(tmp_path / name) == 20_000 for name in os.listdir(tmp_path))


def test_a_full_disk(small_disk):
    disk = small_disk("size=2m")
    with pytest.raises(calve.CalveError) as caught:
        calve.write_files(disk, {f"f{n}": bytes(300_000) for n in range(20)})
    assert caught.value.errno == errno.ENOSPC and "stay" in caught.value.hint and caught.value.code == "ERR_CALVE_NO_ROOM"
    assert all(os.path.getsize(disk / name) == 300_000 for name in os.listdir(disk))


def test_a_file_in_the_way_and_too_long_a_name(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(calve.CalveError) as caught:
        calve.write_files(tmp_path, {"file/below": "x"}, mkdir=True)
    assert caught.value.errno == errno.ENOTDIR and isinstance(caught.value, NotADirectoryError)
    with pytest.raises(calve.CalveError) as caught:
        calve.write_files(tmp_path, {"x" * 300: "x"})
    assert caught.value.errno == errno.ENAMETOOLONG
    assert os.listdir(tmp_path) == ["file"] and (tmp_path / "file").read_text() == "old"


def test_from_several_threads_at_once(tmp_path):
    def write(number):
        calve.write_files(tmp_path / f"{number}", {f"f{n}": f"{number}" for n in range(500)}, mkdir=True)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(os.listdir(tmp_path / f"{number}")) for number in range(6)] == [500] * 6


def test_cancelled_before_and_after(tmp_path):
    switch = calve.Cancellation()
    switch.cancel()
    with pytest.raises(calve.Cancelled):
        calve.write_files(tmp_path, {"a": "x"}, cancellation=switch)
    with pytest.raises(calve.Cancelled):
        list(calve.read_files([__file__], cancellation=switch))
    assert os.listdir(tmp_path) == []
    switch = calve.Cancellation()
    calve.write_files(tmp_path, {"a": "x"}, cancellation=switch)
    switch.cancel()
    assert (tmp_path / "a").read_text() == "x"
