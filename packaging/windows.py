#!/usr/bin/env python3
"""Make the wheel for Windows, where Calve does not run: that of another system without its binaries. It loads, and says so.

usage: packaging/windows.py WHEEL DIRECTORY
"""
import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

TAGS = ["py3-none-win32", "py3-none-win_amd64", "py3-none-win_arm64"]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wheel, directory = Path(sys.argv[1]), Path(sys.argv[2])
    name, version = wheel.name.split("-")[:2]
    information = f"{name}-{version}.dist-info"
    directory.mkdir(parents=True, exist_ok=True)
    record = []
    with zipfile.ZipFile(wheel) as given, \
            zipfile.ZipFile(directory / f"{name}-{version}-py3-none-win32.win_amd64.win_arm64.whl", "w", zipfile.ZIP_DEFLATED) as made:
        for entry in given.infolist():
            if re.match(r"calve/(_native\.[^/]*\.?so|_program/)|calve\.libs/|.*\.dist-info/(RECORD|sboms/)", entry.filename):
                continue
            data = given.read(entry)
            if entry.filename == f"{information}/WHEEL":
                lines = [line for line in data.decode().splitlines() if line and not line.startswith(("Tag:", "Root-Is-Purelib:"))]
                data = "\n".join([*lines, "Root-Is-Purelib: true", *(f"Tag: {tag}" for tag in TAGS), ""]).encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            record.append(f"{entry.filename},sha256={digest},{len(data)}\n")
            made.writestr(zipfile.ZipInfo(entry.filename, entry.date_time), data, zipfile.ZIP_DEFLATED)
        made.writestr(f"{information}/RECORD", "".join(record) + f"{information}/RECORD,,\n")


if __name__ == "__main__":
    main()
