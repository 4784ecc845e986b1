"""``calve.shutil`` against ``shutil``: what one makes of a tree, the other makes too."""

import errno
import os
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import calve.shutil


def everything(root):
    """Each path of a tree, with its own metadata from before anything was read."""
    paths = [root]
    for directory, names, files in os.walk(root):
        paths += [os.path.join(directory, name) for name in names + files]
    return {path: os.lstat(path) for path in paths}


def described(root, atimes):
    """All that a program can see of a tree, but for numbers that are always new."""
    found = {}
    for path, data in everything(root).items():
        try:
            xattrs = {name: os.getxattr(path, name, follow_symlinks=False) for name in os.listxattr(path, follow_symlinks=False)}
        except (OSError, AttributeError):
            xattrs = None
        if stat.S_ISREG(data.st_mode):
            with open(path, "rb") as file:
                contents = file.read()
        else:
            contents = os.readlink(path) if stat.S_ISLNK(data.st_mode) else None
        links = None if stat.S_ISDIR(data.st_mode) else data.st_nlink
        atime = data.st_atime_ns if atimes and stat.S_ISREG(data.st_mode) else None
        found[os.path.relpath(path, root)] = (data.st_mode, data.st_uid, data.st_gid, links, atime, data.st_mtime_ns, xattrs, contents)
    return found


def outcome(action, *given, **options):
    """The result of a call with the differing name of the destination taken out."""
    try:
        return ("returned", type(action(*given, **options)).__name__)
    except calve.shutil.Error as error:
        listed = error.args[0]
        if isinstance(listed, str):
            return (type(error).__name__, listed)
        return (type(error).__name__, sorted((str(src), os.path.basename(str(dst)), text.replace(str(given[1]), "DST")) for src, dst, text in listed))
    except OSError as error:
        return (type(error).__name__, error.errno)


def both(src, place, prepare=lambda dst: None, **options):
    """Copy by both, in the same place, and compare what was made and what was said."""
    results = []
    source = everything(src)
    # Where a file is copied by several names, each copy has the time of access that the one before it left.
    atimes = not any(stat.S_ISLNK(data.st_mode) or not stat.S_ISDIR(data.st_mode) and data.st_nlink > 1 for data in source.values())
    for module in (shutil, calve.shutil):
        for path, data in source.items():
            if stat.S_ISREG(data.st_mode):
                os.utime(path, ns=(data.st_atime_ns, data.st_mtime_ns))
        dst = os.path.join(place, "copy")
        prepare(dst)
        for directory, _, _ in os.walk(dst):
            os.utime(directory, ns=(1, 1))
        said = outcome(module.copytree, src, dst, **options)
        results.append((said, described(dst, atimes) if os.path.isdir(dst) else None))
        subprocess.run(["chmod", "-R", "u+rwx", dst], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(dst, ignore_errors=True)
    assert results[0][0] == results[1][0]
    assert results[0][1] == results[1][1]
    return results[0][0]


def make(path, contents="x", mode=0o644, when=1_500_000_000_123_456_789):
    with open(path, "w", encoding="utf-8") as file:
        file.write(contents)
    os.chmod(path, mode)
    os.utime(path, ns=(when - 1_000, when))


def tree(root, rng, depth=0):
    os.mkdir(root)
    for number in range(rng.randrange(1, 6)):
        make(os.path.join(root, f"file{number}"), "x" * rng.choice([0, 1, 5000, 100_000]), rng.choice([0o644, 0o600, 0o755, 0o444, 0o4755, 0o2711]), rng.randrange(10**18))
    if rng.random() < 0.5:
        os.link(os.path.join(root, "file0"), os.path.join(root, "hard"))
    try:
        os.setxattr(os.path.join(root, "file0"), "user.note", b"value")
        os.setxattr(root, "user.directory", b"value")
    except (OSError, AttributeError):
        pass
    if depth < 3:
        for number in range(rng.randrange(0, 4)):
            tree(os.path.join(root, f"directory{number}"), rng, depth + 1)
    os.chmod(root, rng.choice([0o755, 0o700, 0o555, 0o2755, 0o1777]))
    os.utime(root, ns=(rng.randrange(10**18), rng.randrange(10**18)))


def hand_down(directories, rng):
    """Let some of the directories hand their group, or a default ACL, down to what is made in them."""
    for directory in directories:
        if rng.random() < 0.4:
            if os.geteuid() == 0:
                os.chown(directory, -1, 12345)
            os.chmod(directory, rng.choice([0o2700, 0o2775]))
        if rng.random() < 0.4 and shutil.which("setfacl"):
            acl = rng.choice(["u:12345:rwx", "u:12345:rx,g::-,o::-", "g::-,o::-"])
            subprocess.run(["setfacl", "-d", "-m", acl, directory], check=True)


def test_a_link_far_below_a_read_only_directory_is_followed(tmp_path):
    below = tmp_path / "src" / "closed" / "open"
    below.mkdir(parents=True)
    make(below.parent / "file")
    os.symlink("../file", below / "link")
    try:
        os.setxattr(below.parent, "user.directory", b"value")
    except (OSError, AttributeError):
        pass
    below.parent.chmod(0o555)
    (tmp_path / "place").mkdir()
    both(str(tmp_path / "src"), str(tmp_path / "place"))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("symlinks", [False, True])
def test_random_trees_are_copied_alike(tmp_path, seed, symlinks):
    rng = random.Random(seed)
    src = str(tmp_path / "src")
    tree(src, rng)
    places = [root for root, _, _ in os.walk(src)]
    for number in range(rng.randrange(0, 5)):
        place = rng.choice(places)
        target = rng.choice(["file0", "missing", os.path.join(src, "file0"), "directory0/file0"])
        if os.access(place, os.W_OK):
            os.symlink(target, os.path.join(place, f"link{number}"))
    if rng.random() < 0.4:
        os.symlink(str(tmp_path / "outside"), os.path.join(src, "to_directory")) if os.access(src, os.W_OK) else None
        os.mkdir(tmp_path / "outside")
        make(tmp_path / "outside" / "file")
    ignore = rng.choice([None, None, shutil.ignore_patterns("file1", "directory1"), lambda path, names: ["unknown", *names[:1]]])
    place = tmp_path / "place"
    place.mkdir()
    hand_down([*places, place], rng)
    both(src, str(place), symlinks=symlinks, ignore=ignore, ignore_dangling_symlinks=rng.random() < 0.5)
    for restored in places:
        os.chmod(restored, 0o755)


@pytest.mark.parametrize("seed", range(8))
def test_merging_is_alike(tmp_path, seed):
    rng = random.Random(seed)
    src = str(tmp_path / "src")
    tree(src, rng)

    def prepare(dst):
        os.mkdir(dst)
        make(os.path.join(dst, "file0"), "there already")
        make(os.path.join(dst, "other"), "there already")
        os.mkdir(os.path.join(dst, "directory0"))
        make(os.path.join(dst, "directory0", "file1"), "there already", 0o600)

    both(src, str(tmp_path), prepare, dirs_exist_ok=True)
    both(src, str(tmp_path), os.mkdir, dirs_exist_ok=True)
    assert both(src, str(tmp_path), os.mkdir)[0] == "FileExistsError"
    for directory, _, _ in os.walk(src):
        os.chmod(directory, 0o755)


def test_what_cannot_be_copied_is_said_alike(tmp_path):
    src = tmp_path / "src"
    (src / "inner").mkdir(parents=True)
    make(src / "inner" / "file")
    make(src / "secret", mode=0o000)
    os.mkfifo(src / "inner" / "fifo")
    (src / "closed").mkdir(mode=0o000)
    with socket.socket(socket.AF_UNIX) as listening:
        where = os.getcwd()
        os.chdir(src)
        try:
            listening.bind("socket")
        finally:
            os.chdir(where)
        said = both(str(src), str(tmp_path))
    assert said[0] == "Error" and len(said[1]) >= 2
    (src / "closed").chmod(0o755)


def test_directories_that_hand_something_down(tmp_path):
    src = tmp_path / "src"
    (src / "inner").mkdir(parents=True)
    make(src / "inner" / "file", mode=0o640)
    place = tmp_path / "place"
    place.mkdir()
    if os.geteuid() == 0:
        os.chown(place, -1, 12345)
    place.chmod(0o2775)
    both(str(src), str(place))
    if shutil.which("setfacl"):
        subprocess.run(["setfacl", "-d", "-m", "u:12345:rwx", place], check=True)
        both(str(src), str(place))


def test_names_that_are_no_text_and_bytes(tmp_path):
    src = os.fsencode(tmp_path / "src")
    os.mkdir(src)
    make(src + b"/\xff\xfe")
    os.symlink(b"\xff\xfe", src + b"/link")
    both(os.fsdecode(src), str(tmp_path))
    calve.shutil.copytree(src, os.fsencode(tmp_path / "bytes"), ignore=lambda path, names: [b"link"])
    assert os.listdir(tmp_path / "bytes") == ["\udcff\udcfe"]


def test_ignore_is_asked_once_for_each_directory(tmp_path):
    src = tmp_path / "src"
    (src / "a" / "b").mkdir(parents=True)
    (src / "c").mkdir()
    os.symlink("a", src / "link")
    for options in ({}, {"symlinks": True}):
        asked = []
        calve.shutil.copytree(src, tmp_path / f"copy{len(options)}", ignore=lambda path, names: asked.append(path) or [], **options)
        expected = [src, src / "a", src / "a" / "b", src / "c"] + ([] if options else [src / "link", src / "link" / "b"])
        assert sorted(asked) == sorted(map(str, expected))


@pytest.mark.parametrize("names", [["file", "nothing here", "a/b", "", "..", 7, None], {"a"}, ("file",), "file", [["file"]]])
def test_ignore_may_return_anything(tmp_path, names):
    src = tmp_path / "src"
    (src / "a" / "b").mkdir(parents=True)
    make(src / "file")
    make(src / "a" / "file")
    both(src, tmp_path, ignore=lambda path, present: names)
    for module, name in ((shutil, "standard"), (calve.shutil, "calve")):
        with pytest.raises(TypeError):
            module.copytree(src, tmp_path / name, ignore=lambda path, present: 7)
    assert os.listdir(tmp_path / "standard") == os.listdir(tmp_path / "calve")


def test_ignore_may_return_what_can_be_looked_through_once(tmp_path):
    src = tmp_path / "src"
    (src / "a" / "b").mkdir(parents=True)
    for name in ("one", "two", "three"):
        make(src / "a" / name)
        os.symlink(name, src / "a" / f"link to {name}")
    for prepare in (lambda dst: None, os.mkdir):
        both(src, tmp_path, prepare, ignore=lambda path, names: (name for name in names if "o" in name), dirs_exist_ok=True)


def test_what_is_wrong_with_paths_is_said_alike(tmp_path):
    src = tmp_path / "src"
    (src / "a").mkdir(parents=True)
    make(src / "file")
    pairs = [(os.fsencode(src), str(tmp_path / "copy")), (str(src), os.fsencode(tmp_path / "copy")), (7.5, tmp_path / "copy"), (src, None)]
    pairs += [(tmp_path / "missing", tmp_path / "new" / "copy"), (src / "file", tmp_path / "new" / "copy"), (f"{src}\0", tmp_path / "copy")]
    for given in pairs:
        outcomes = []
        for module in (shutil, calve.shutil):
            with pytest.raises((TypeError, ValueError, OSError)) as caught:
                module.copytree(*given)
            outcomes.append((type(caught.value), sorted(os.listdir(tmp_path))))
            shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        assert outcomes[0] == outcomes[1]


def test_slashes_and_directories_that_are_there_in_part(tmp_path):
    src = tmp_path / "src"
    (src / "there" / "new" / "deep").mkdir(parents=True)
    (src / "other").mkdir()
    make(src / "there" / "new" / "deep" / "file")
    make(src / "there" / "file")
    make(src / "other" / "file")
    os.symlink("file", src / "there" / "new" / "deep" / "link")
    os.symlink("deep", src / "there" / "new" / "to deep")
    for given in (f"{src}/", f"{src}//", os.path.relpath(src), src):
        for symlinks in (False, True):
            for ignore in (None, shutil.ignore_patterns("other")):
                both(given, tmp_path, lambda dst: os.makedirs(f"{dst}/there"), dirs_exist_ok=True, symlinks=symlinks, ignore=ignore)
                both(given, tmp_path, symlinks=symlinks, ignore=ignore)


@pytest.mark.parametrize("error", [ValueError("no"), PermissionError("no")])
def test_ignore_that_raises(tmp_path, error):
    src = tmp_path / "src"
    (src / "a").mkdir(parents=True)
    make(src / "file")
    calls = []

    def ignore(path, names):
        calls.append(path)
        if path.endswith("a"):
            raise error
        return []

    raised = []
    for module, name in ((shutil, "standard"), (calve.shutil, "calve")):
        with pytest.raises((ValueError, shutil.Error)) as caught:
            module.copytree(src, tmp_path / name, ignore=ignore)
        raised.append(type(caught.value))
    assert raised[0] is raised[1]
    assert len(calls) == 4
    assert os.listdir(tmp_path / "standard") == os.listdir(tmp_path / "calve")


def test_a_copy_function_of_the_callers_is_called_for_each_file(tmp_path):
    src = tmp_path / "src"
    (src / "a").mkdir(parents=True)
    make(src / "a" / "one")
    make(src / "two")
    called = []
    calve.shutil.copytree(src, tmp_path / "copy", copy_function=lambda src, dst: called.append(os.path.basename(src)) or shutil.copy(src, dst))
    assert sorted(called) == ["one", "two"]


def test_files_share_what_the_file_system_can_share(tmp_path):
    make(tmp_path / "src", "x" * 100_000, 0o640)
    assert calve.shutil.copy2(tmp_path / "src", tmp_path / "dst") == tmp_path / "dst"
    assert described(str(tmp_path / "src"), False) == described(str(tmp_path / "dst"), False)
    os.mkdir(tmp_path / "directory")
    assert calve.shutil.copy(tmp_path / "src", tmp_path / "directory") == str(tmp_path / "directory" / "src")
    os.link(tmp_path / "dst", tmp_path / "other name")
    make(tmp_path / "short", "short")
    calve.shutil.copyfile(tmp_path / "short", tmp_path / "dst")
    # It is written to, and not replaced.
    assert (tmp_path / "other name").read_text() == "short"
    with pytest.raises(calve.shutil.SameFileError):
        calve.shutil.copyfile(tmp_path / "dst", tmp_path / "other name")
    calve.shutil.copyfile("/proc/self/status", tmp_path / "status")
    assert (tmp_path / "status").read_text().startswith("Name:")


def test_rmtree_leaves_nothing_beside_it(tmp_path):
    tree(str(tmp_path / "parent"), random.Random(3))
    for directory, _, _ in os.walk(tmp_path / "parent"):
        os.chmod(directory, 0o755)
    calve.shutil.rmtree(tmp_path / "parent")
    assert os.listdir(tmp_path) == []


def test_rmtree_of_what_cannot_be_deleted(tmp_path):
    if os.geteuid() == 0:
        # Root may delete all but what is in use as a mount point.
        (tmp_path / "src" / "mount").mkdir(parents=True)
        script = 'mount -t tmpfs tmpfs "$1/mount" && "$2" -c "$3" "$1"'
        code = (
            "import sys, calve.shutil\nseen = []\n"
            "calve.shutil.rmtree(sys.argv[1], onerror=lambda function, path, info: seen.append((function.__name__, path)))\n"
            "assert seen == [('rmdir', sys.argv[1] + '/mount'), ('rmdir', sys.argv[1])], seen\n"
            "import os\nfor n in range(30): os.mkdir(f'{sys.argv[1]}/{n}')\n"
            "try: calve.shutil.rmtree(sys.argv[1])\nexcept OSError as error: assert os.path.basename(error.filename) == 'mount'\n"
            "else: raise AssertionError('no error')\n"
            "assert os.listdir(sys.argv[1]) == ['mount']"
        )
        subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", tmp_path / "src", sys.executable, code], check=True)
        return
    (tmp_path / "src" / "closed").mkdir(parents=True)
    make(tmp_path / "src" / "closed" / "file")
    make(tmp_path / "src" / "free")
    (tmp_path / "src" / "closed").chmod(0o555)
    seen = []
    calve.shutil.rmtree(tmp_path / "src", onerror=lambda function, path, info: seen.append(function.__name__))
    assert seen == ["unlink", "rmdir", "rmdir"]
    assert os.listdir(tmp_path / "src") == ["closed"]
    # Where nobody wants to hear of it, the first one is raised when everything else is gone.
    for number in range(30):
        make(tmp_path / "src" / str(number))
    with pytest.raises(PermissionError) as caught:
        calve.shutil.rmtree(tmp_path / "src")
    assert os.path.basename(caught.value.filename) == "file" and os.listdir(tmp_path / "src") == ["closed"]
    (tmp_path / "src" / "closed").chmod(0o755)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the standard library has no dir_fd there")
def test_rmtree_by_descriptor_and_of_other_things(tmp_path):
    (tmp_path / "src").mkdir()
    make(tmp_path / "src" / "file")
    directory = os.open(tmp_path, os.O_RDONLY)
    calve.shutil.rmtree("src", dir_fd=directory)
    assert not (tmp_path / "src").exists()
    os.close(directory)
    with pytest.raises(OSError):
        calve.shutil.rmtree("src", dir_fd=directory)
    make(tmp_path / "file")
    os.symlink(tmp_path, tmp_path / "link")
    for name in ("file", "link", "missing"):
        with pytest.raises(OSError):
            calve.shutil.rmtree(tmp_path / name)
        calve.shutil.rmtree(tmp_path / name, ignore_errors=True)
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the standard library has no dir_fd there")
def test_a_descriptor_that_is_closed_while_rmtree_runs(tmp_path, monkeypatch):
    """What is below it is deleted, and the directory itself cannot be: the same from both."""
    outcomes = []
    for module in (shutil, calve.shutil):
        (tmp_path / "src" / "inner").mkdir(parents=True, exist_ok=True)
        make(tmp_path / "src" / "file")
        directory, unlink = os.open(tmp_path, os.O_RDONLY), os.unlink

        def close_and_unlink(*given, **options):
            os.close(directory)
            unlink(*given, **options)

        with monkeypatch.context() as patch, pytest.raises(OSError) as caught:
            patch.setattr(os, "unlink", close_and_unlink)
            module.rmtree("src", dir_fd=directory)
        outcomes.append((caught.value.errno, caught.value.filename, os.listdir(tmp_path / "src")))
    assert outcomes == [(errno.EBADF, "src", [])] * 2


def test_the_documented_setup_py(tmp_path):
    page = (Path(os.environ["CALVE_README"]).parent.parent / "docs/node-and-python.md").read_text(encoding="utf-8")
    [script] = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "setuptools" in block]
    (tmp_path / "assets" / "icons").mkdir(parents=True)
    make(tmp_path / "assets" / "icons" / "one.svg")
    (tmp_path / "my_package").mkdir()
    make(tmp_path / "my_package" / "__init__.py", "")
    make(tmp_path / "setup.py", script)
    make(tmp_path / "pyproject.toml", '[project]\nname = "my-package"\nversion = "1"\n[tool.setuptools]\npackages = ["my_package"]\n')
    subprocess.run([sys.executable, "setup.py", "--quiet", "build"], cwd=tmp_path, check=True)
    assert (tmp_path / "build" / "lib" / "my_package" / "assets" / "icons" / "one.svg").read_text() == "x"


def test_sources_within_destinations_by_a_link(tmp_path):
    (tmp_path / "src" / "inner").mkdir(parents=True)
    make(tmp_path / "src" / "file")
    os.symlink("src", tmp_path / "link")
    calve.shutil.copytree(tmp_path / "link", tmp_path / "src" / "new" / "copy")
    assert sorted(os.listdir(tmp_path / "src" / "new" / "copy")) == ["file", "inner"]
    with pytest.raises(shutil.Error):
        calve.shutil.copytree(tmp_path / "link", tmp_path / "src", dirs_exist_ok=True)
    assert (tmp_path / "src" / "file").read_text() == "x"


@pytest.mark.parametrize("symlinks", [False, True])
def test_what_a_copy_adds_to_its_source_is_copied_alike(tmp_path, symlinks):
    """A directory that is made in the source by the copy itself is no reason to copy more than the standard library does."""
    made = []
    for module in (shutil, calve.shutil):
        # The source is inside of the destination; a link in the destination leads into the source, or to a directory above it.
        for src, dst in (("outer/inner", "outer"), ("src", "dst"), ("outer/inner", "dst")):
            (tmp_path / "outer" / "inner" / "inner" / "new").mkdir(parents=True)
            make(tmp_path / "outer" / "inner" / "inner" / "new" / "file")
            (tmp_path / "src" / "a" / "new").mkdir(parents=True)
            make(tmp_path / "src" / "a" / "new" / "file")
            (tmp_path / "src" / "b").mkdir()
            (tmp_path / "dst").mkdir()
            (tmp_path / "outer" / "inner" / "a" / "inner" / "new").mkdir(parents=True)
            os.symlink("../src/b" if src == "src" else "../outer", tmp_path / "dst" / "a")
            module.copytree(tmp_path / src, tmp_path / dst, symlinks=symlinks, dirs_exist_ok=True)
            found = sorted(os.path.relpath(path, tmp_path) for path in everything(tmp_path))
            made.append([path for path in found if not path.startswith("dst/b/")])
            for name in ("outer", "src", "dst"):
                shutil.rmtree(tmp_path / name)
    assert made[:3] == made[3:]


def test_a_file_that_is_its_own_copy_is_named_by_its_path(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "dst").mkdir()
    make(tmp_path / "src" / "file")
    os.link(tmp_path / "src" / "file", tmp_path / "dst" / "file")
    names = []
    for module in (shutil, calve.shutil):
        with pytest.raises(shutil.Error) as caught:
            module.copytree(tmp_path / "src", tmp_path / "dst", dirs_exist_ok=True)
        names.append("".join(caught.value.args[0]).partition(" and ")[0])
    assert names == ["<DirEntry 'file'>", repr(str(tmp_path / "src" / "file"))]


def test_on_macos_the_standard_library_copies_trees(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    make(tmp_path / "src" / "file")
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(calve._shutil, "Operation", None)
    calve.shutil.copytree(tmp_path / "src", tmp_path / "dst")
    assert os.listdir(tmp_path / "dst") == ["file"]


def test_a_destination_that_changes_meanwhile(tmp_path):
    """Somebody makes and removes entries of the destination: what the source has is not lost, and what is said is an ``Error``."""
    src = tmp_path / "src"
    for number in range(30):
        (src / f"d{number}").mkdir(parents=True)
        make(src / f"d{number}" / "file")
    stop = threading.Event()
    dst = tmp_path / "dst"

    def disturb():
        rng = random.Random(1)
        while not stop.is_set():
            name = dst / f"d{rng.randrange(30)}"
            try:
                rng.choice([lambda: name.write_text("a file"), name.unlink, name.mkdir, name.rmdir])()
            except OSError:
                pass

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(30):
            try:
                calve.shutil.copytree(src, dst, dirs_exist_ok=True)
            except (shutil.Error, OSError):
                pass
    finally:
        stop.set()
        thread.join()
    assert all((src / f"d{number}" / "file").read_text() == "x" for number in range(30))
    shutil.rmtree(dst)
    assert sorted(os.listdir(tmp_path)) == ["src"]


def test_an_interrupt_leaves_no_half_of_a_new_tree(tmp_path):
    src = tmp_path / "src"
    for number in range(200):
        (src / f"d{number}").mkdir(parents=True)
        for file in range(20):
            make(src / f"d{number}" / f"f{file}")
    code = (
        "import sys, calve.shutil, os\nprint('ready', flush=True)\n"
        "while True:\n"
        "    calve.shutil.copytree(sys.argv[1], sys.argv[2])\n"
        "    os.rename(sys.argv[2], sys.argv[2] + '.old')\n"
        "    calve.shutil.rmtree(sys.argv[2] + '.old')\n"
    )
    for delay in (0.05, 0.1, 0.2, 0.3):
        child = subprocess.Popen([sys.executable, "-c", code, src, tmp_path / "dst"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(delay)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
        assert b"KeyboardInterrupt" in said
        if (tmp_path / "dst").exists():
            assert sum(len(files) for _, _, files in os.walk(tmp_path / "dst")) == 4000
        for left in os.listdir(tmp_path):
            assert left in ("src", "dst", "dst.old"), left
            if left != "src":
                shutil.rmtree(tmp_path / left)


def test_every_name_of_the_standard_module_is_there():
    for name in dir(shutil):
        assert hasattr(calve.shutil, name), name
    assert calve.shutil.rmtree.avoids_symlink_attacks == shutil.rmtree.avoids_symlink_attacks
    assert calve.shutil.make_archive is shutil.make_archive


def test_it_may_take_the_place_of_the_standard_functions(tmp_path):
    (tmp_path / "src" / "inner").mkdir(parents=True)
    make(tmp_path / "src" / "inner" / "file")
    code = (
        "import shutil, calve.shutil, sys\n"
        "for name in ('copy', 'copy2', 'copyfile', 'copytree', 'move', 'rmtree'): setattr(shutil, name, getattr(calve.shutil, name))\n"
        "import os\nos.mkfifo(sys.argv[1] + '/fifo')\n"
        "try: shutil.copytree(sys.argv[1], sys.argv[2])\n"
        "except shutil.Error as error: assert len(error.args[0]) == 1\n"
        "shutil.move(sys.argv[2], sys.argv[2] + '2')\nshutil.rmtree(sys.argv[2] + '2')\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "src", tmp_path / "dst"], check=True)
    assert os.listdir(tmp_path) == ["src"]


def test_ignore_is_asked_before_anything_is_copied(tmp_path):
    (tmp_path / "src" / "inner").mkdir(parents=True)
    make(tmp_path / "src" / "file")
    there = []
    calve.shutil.copytree(tmp_path / "src", tmp_path / "dst", ignore=lambda path, names: there.append((tmp_path / "dst").exists()) or [])
    assert there == [False, False]


def test_the_source_keeps_its_times_of_access(tmp_path):
    (tmp_path / "src").mkdir()
    make(tmp_path / "src" / "file")
    before = os.stat(tmp_path / "src" / "file").st_atime_ns
    calve.shutil.copytree(tmp_path / "src", tmp_path / "dst")
    calve.shutil.copy2(tmp_path / "src" / "file", tmp_path / "file")
    assert [os.stat(path).st_atime_ns for path in (tmp_path / "src" / "file", tmp_path / "dst" / "file", tmp_path / "file")] == [before] * 3


def test_audit_events_are_one_for_each_tree(tmp_path):
    (tmp_path / "src" / "inner").mkdir(parents=True)
    make(tmp_path / "src" / "inner" / "file")
    code = (
        "import sys, calve.shutil\nseen = []\n"
        "sys.addaudithook(lambda event, given: seen.append(event) if event.startswith('shutil.') or event == 'open' else None)\n"
        "calve.shutil.copytree(sys.argv[1], sys.argv[2])\n"
        "assert seen == ['shutil.copytree'], seen\n"
        "calve.shutil.copyfile(sys.argv[1] + '/inner/file', sys.argv[2] + '/file')\n"
        "calve.shutil.rmtree(sys.argv[2])\n"
        "calls = [event for event in seen if event != 'open']\n"
        "assert calls == ['shutil.copytree', 'shutil.copyfile', 'shutil.rmtree'], calls\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "src", tmp_path / "dst"], check=True)


def test_a_python_without_copy_file_range(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "copy_file_range", raising=False)
    (tmp_path / "a").write_bytes(b"contents")
    (tmp_path / "b").write_bytes(b"old")
    calve.shutil.copyfile(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"contents"


@pytest.mark.parametrize("mode", [0o755, 0o555, 0o2755, 0o2700])
def test_a_followed_link_inherits_nothing_of_the_source(needs, tmp_path, mode):
    needs("setfacl")
    src = tmp_path / "src"
    (src / "inner").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    make(tmp_path / "secret" / "key", mode=0o640)
    for directory in (src, src / "inner"):
        (directory / "file").symlink_to(tmp_path / "secret" / "key")
        (directory / "directory").symlink_to(tmp_path / "secret")
        subprocess.run(["setfacl", "-d", "-m", "u:12345:rwx", directory], check=True)
        directory.chmod(mode)
    both(str(src), str(tmp_path))
    calve.shutil.copytree(src, tmp_path / "copy")
    assert "system.posix_acl_access" not in os.listxattr(tmp_path / "copy" / "inner" / "file")


def test_a_full_disk_is_told_with_both_names(tmp_path, small_disk):
    disk = small_disk("size=300k")
    for size in (600_000, 2_000):
        make(tmp_path / "src", "x" * size)
        if size < 300_000:
            make(disk / "filler", "x" * 290_000)
        for function in ("copyfile", "copy", "copy2", "move"):
            said = []
            for module in (shutil, calve.shutil):
                with pytest.raises(OSError) as caught:
                    for number in range(100):
                        getattr(module, function)(str(tmp_path / "src"), str(disk / f"dst{number}"))
                        make(tmp_path / "src", "x" * size)
                said.append((caught.value.errno, caught.value.filename, os.path.dirname(caught.value.filename2 or "")))
                for left in disk.glob("dst*"):
                    left.unlink()
            assert said[0] == said[1]


def test_open_files_are_copied_from_where_they_are(tmp_path):
    make(tmp_path / "src", "x" * 10_000)
    made = []
    for module in (shutil, calve.shutil):
        with open(tmp_path / "src", "rb") as src, open(tmp_path / module.__name__, "wb") as dst:
            dst.write(b"before")
            dst.flush()
            given, number = os.dup(src.fileno()), os.dup(dst.fileno())
            assert module.copyfile(tmp_path / "src", number) == number
            module.copyfile(given, tmp_path / "other")
            made.append(((tmp_path / module.__name__).read_bytes(), (tmp_path / "other").read_bytes()))
    assert made[0] == made[1]
