#!/usr/bin/env python3
"""Make the archive of one target: program, licences, README, completions, manual pages.

usage: packaging/archive.py TARGET PROGRAM DIRECTORY [HOST_PROGRAM]

TARGET is the Rust name of the system that PROGRAM is for. The archive `calve-TARGET.tar.gz` goes into
DIRECTORY. HOST_PROGRAM prints the completions and manual pages, where PROGRAM cannot run on this machine.
"""
import gzip
import io
import sys
import tarfile
from pathlib import Path

import contents


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    target, program, directory = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    host_program = Path(sys.argv[4]) if len(sys.argv) == 5 else program
    files = {"calve": program.read_bytes()}
    files |= contents.documents(target)
    files |= {f"completions/{name}": text for name, text in contents.completions(host_program).items()}
    files |= {f"man/{name}": text for name, text in contents.manual(host_program).items()}
    directory.mkdir(parents=True, exist_ok=True)
    name = f"calve-{target}"
    archive = directory / f"{name}.tar.gz"
    write_tar(archive, name, files)
    print(archive)


def write_tar(archive, top, files):
    with archive.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mtime = len(data), contents.epoch()
            entry.mode = 0o755 if name == "calve" else 0o644
            tar.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    main()
