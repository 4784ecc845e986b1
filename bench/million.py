"""Peak memory and peak open files of `calve cp` on a tree of a million entries, on XFS."""
import os
import subprocess

import place
from measure import measure_peaks


def run(args, calve, scratch, say):
    if calve is None:
        say("calve is missing")
        return 1
    with place.volume("xfs", args.size, scratch) as mountpoint:
        source = mountpoint / "source"
        say(f"generating {args.entries:,} entries")
        # Small files, to fit the image: what is measured here depends on the number of entries only.
        subprocess.run([place.REPO / "scripts/shared/generate-tree", "--max-size", "200", str(args.entries), source], check=True)
        os.sync()
        say("$ calve cp SRC DST")
        sample, peaks = measure_peaks([calve, "cp", str(source), str(mountpoint / "copy")], scratch)
        if sample.exit_code != 0:
            say(f"failed, exit code {sample.exit_code}: {sample.stderr}")
            return 1
        tree, copy = place.census(source), place.census(mountpoint / "copy")
    print(f"# `calve cp` of {tree.files + tree.directories + tree.symlinks:,} entries on XFS\n")
    print(f"- tree: {tree.files:,} files, {tree.directories:,} directories, {tree.symlinks:,} symlinks; "
          f"the copy {'has as many' if copy == tree else f'DIFFERS: {copy}'}")
    print(f"- time: {sample.seconds:.1f} s, while being watched")
    print(f"- peak memory: {peaks.memory_kib / 1024:.1f} MiB")
    print(f"- peak open files: {peaks.open_files_main} in the main thread's file table, {peaks.open_files} in all "
          f"file tables of the process ({peaks.tables}; {peaks.samples} samples, at least 5 ms apart)")
    return 0 if copy == tree else 1
