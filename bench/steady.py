"""What commands are compared by, as `calve bench copy` does it (docs/benchmarks.md): the time of an undisturbed run in a usual round."""
import math
import os
from pathlib import Path
from statistics import fmean, median


def steady(times):
    """The geometric mean of the faster half: what disturbs a run makes it longer, never shorter."""
    faster = sorted(times)[:(len(times) + 1) // 2]
    return math.exp(fmean(map(math.log, faster)))


def without_rounds(times_by_round):
    """Without what each round took as a whole (median polish of the logarithms). {name: [[seconds, ...] of each round]}"""
    rounds = range(len(next(iter(times_by_round.values()))))
    effects = [0.0 for _ in rounds]
    logs = {name: [[math.log(time) for time in times] for times in of_rounds] for name, of_rounds in times_by_round.items()}
    for _ in range(5):
        middles = {name: median(log - effects[number] for number in rounds for log in of_rounds[number])
                   for name, of_rounds in logs.items()}
        effects = [median(log - middles[name] for name, of_rounds in logs.items() for log in of_rounds[number]) for number in rounds]
    return {name: [math.exp(log - effects[number]) for number in rounds for log in of_rounds[number]]
            for name, of_rounds in logs.items()}


def make_free(size):
    """Make `size` bytes of memory free, so that the next command need not wait for the kernel to find some."""
    memory = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free, available, total = (int(memory[name].split()[0]) * 1024 for name in ("MemFree", "MemAvailable", "MemTotal"))
    wanted = size + total // 50
    if free < wanted:
        descriptor = os.memfd_create("calve-bench")
        try:
            os.posix_fallocate(descriptor, 0, min(wanted, available // 2))
        finally:
            os.close(descriptor)
