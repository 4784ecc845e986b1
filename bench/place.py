"""Where the bench runs: new file systems on loop images, with the tree in them; and a description of the machine."""
import contextlib
import os
import platform
import shutil
import stat
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent


@contextlib.contextmanager
def volume(fs, size, directory):
    """A new file system of that size on a sparse image in `directory`; yields where it is mounted."""
    image, mountpoint = f"{directory}/{fs}.image", f"{directory}/{fs}"
    _volumes("volume_mount", fs, size, image, mountpoint)
    try:
        yield Path(mountpoint)
    finally:
        _volumes("volume_unmount", image, mountpoint)


def clean(directory):
    _volumes("volumes_clean", directory)


def _volumes(*words):
    subprocess.run(["bash", "-euo", "pipefail", "-c", 'source "$0"; "$@"', f"{REPO}/scripts/shared/volumes", *map(str, words)],
                   check=True, stdin=subprocess.DEVNULL)


def populate(tree, destination):
    """A copy of the tree with its own bytes, all of it on the disk and in the page cache."""
    subprocess.run(["cp", "-a", "--reflink=never", "--", tree, destination], check=True)
    warm(destination)


def warm(tree):
    # tar reads nothing when its output is /dev/null itself.
    subprocess.run(["bash", "-euo", "pipefail", "-c", 'tar -cf - -C "$0" . | cat >/dev/null', str(tree)], check=True)
    os.sync()


def settle(parent, timeout_seconds=120):
    """Wait until a background deletion has emptied `parent`."""
    deadline = time.monotonic() + timeout_seconds
    while os.listdir(parent):
        if time.monotonic() > deadline:
            raise TimeoutError(f"`{parent}` is not empty {timeout_seconds} s after a removal")
        time.sleep(0.02)


@dataclass
class Census:
    files: int = 0
    directories: int = 0
    symlinks: int = 0
    bytes: int = 0


def census(tree):
    count = Census()
    for _, entry in _entries(tree):
        if stat.S_ISDIR(entry.st_mode):
            count.directories += 1
        elif stat.S_ISLNK(entry.st_mode):
            count.symlinks += 1
        else:
            count.files += 1
            count.bytes += entry.st_size
    return count


def _entries(tree):
    yield ".", os.lstat(tree)
    for directory, subdirectories, files in os.walk(tree):
        for name in subdirectories + files:
            path = os.path.join(directory, name)
            yield os.path.relpath(path, tree), os.lstat(path)


def machine(image_directory):
    cpu = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gib": round(memory_kib / 2**20, 1),
        "kernel": platform.release(),
        "images_on": file_system(image_directory),
        "load_before": round(os.getloadavg()[0], 2),
    }


def file_system(path):
    return _mounted(path, "FSTYPE")


def mount_options(mountpoint):
    return _mounted(mountpoint, "OPTIONS")


def _mounted(path, column):
    """A column of findmnt for the topmost of the mounts at `path`."""
    return _output("findmnt", "-n", "-o", column, "-T", str(path)).splitlines()[-1]


def version(program):
    printed = _output(program, "version" if program.endswith("btrfs") else "--version")
    return printed.splitlines()[0] if printed else "unknown"


def _output(*argv):
    if shutil.which(argv[0]) is None:
        return ""
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()
