"""Run the program that the package contains: ``python -m calve``, or the command ``calve``."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from ._errors import CalveError
from ._program import program


def main() -> NoReturn:
    try:
        path = program()
    except CalveError as error:
        sys.exit(f"calve: {error}")
    if path is None:
        sys.exit("calve: the program is not part of this installation; install the package's wheel with pip")
    os.execv(path, ["calve", *sys.argv[1:]])


if __name__ == "__main__":
    main()
