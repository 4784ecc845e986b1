"""Run the program that the package contains: ``python -m calve``, or the command ``calve``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import NoReturn

from ._program import program


def main() -> NoReturn:
    path = program()
    if path is None:
        sys.exit("calve: the program is not part of this installation; install the package's wheel with pip")
    if sys.platform == "win32":
        # A console sends Ctrl-C to both processes, and the program handles it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(subprocess.run([path, *sys.argv[1:]]).returncode)
    os.execv(path, ["calve", *sys.argv[1:]])


if __name__ == "__main__":
    main()
