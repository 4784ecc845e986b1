"""Run a command and measure it: wall time and CPU; where asked, its peak memory and peak number of open files as well."""
import ctypes
import os
import platform
import threading
import time
from dataclasses import dataclass

KCMP_NUMBER = {"x86_64": 312, "aarch64": 272}
KCMP_FILES = 2
LIBC = ctypes.CDLL(None)


@dataclass
class Sample:
    seconds: float
    user_seconds: float
    system_seconds: float
    exit_code: int
    stdout: str
    stderr: str


@dataclass
class Peaks:
    """Sampled while the command ran; zero where it ended before the first sample."""
    memory_kib: int = 0
    open_files_main: int = 0  # in the file table of the main thread
    open_files: int = 0  # in all file tables: threads may have tables of their own (CLONE_FILES unshared)
    tables: int = 0
    samples: int = 0


def measure(argv, scratch):
    began = time.perf_counter()
    return _finish(_start(argv, scratch), began, scratch)


def measure_peaks(argv, scratch, every_seconds=0.005):
    """Like `measure`, but watched from a thread, which costs the command some time.

    wait4's ru_maxrss would not do: after a vfork it starts at the peak of the parent.
    """
    peaks = Peaks()
    done = threading.Event()
    began = time.perf_counter()
    pid = _start(argv, scratch)
    watcher = threading.Thread(target=_watch, args=(pid, done, peaks, every_seconds))
    watcher.start()
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    done.set()
    watcher.join()
    return _finish(pid, began, scratch), peaks


def _start(argv, scratch):
    """posix_spawn for every command alike; its output goes to files, so that nothing waits on a pipe."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
               (os.POSIX_SPAWN_OPEN, 1, f"{scratch}/stdout", flags, 0o600),
               (os.POSIX_SPAWN_OPEN, 2, f"{scratch}/stderr", flags, 0o600)]
    return os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)


def _finish(pid, began, scratch):
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - began
    printed = []
    for name in ("stdout", "stderr"):
        with open(f"{scratch}/{name}", errors="replace") as file:
            printed.append(file.read(20_000))
    return Sample(seconds, usage.ru_utime, usage.ru_stime, os.waitstatus_to_exitcode(status), *printed)


def _watch(pid, done, peaks, every_seconds):
    while True:
        try:
            memory_kib, tables = _peak_memory_kib(pid), _open_files_of_tables(pid)
        except OSError:
            tables = []
        if tables:
            peaks.memory_kib = max(peaks.memory_kib, memory_kib)
            peaks.open_files_main = max(peaks.open_files_main, tables[0])
            peaks.open_files = max(peaks.open_files, sum(tables))
            peaks.tables = max(peaks.tables, len(tables))
            peaks.samples += 1
        if done.wait(every_seconds):
            return


def _peak_memory_kib(pid):
    """The kernel's own high-water mark, so that a peak between two samples counts."""
    with open(f"/proc/{pid}/status") as status:
        return next((int(line.split()[1]) for line in status if line.startswith("VmHWM:")), 0)


def _open_files_of_tables(pid):
    """The number of descriptors in each distinct file table of a process, the main thread's first."""
    counts, owners = [], []
    for thread in sorted(int(name) for name in os.listdir(f"/proc/{pid}/task")):
        if any(_same_files(thread, owner) for owner in owners):
            continue
        try:
            counts.append(len(os.listdir(f"/proc/{pid}/task/{thread}/fd")))
            owners.append(thread)
        except OSError:
            continue  # the thread has ended
    return counts


def _same_files(thread, other):
    return LIBC.syscall(KCMP_NUMBER[platform.machine()], thread, other, KCMP_FILES, 0, 0) == 0
