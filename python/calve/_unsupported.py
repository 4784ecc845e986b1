"""The place of the native module on systems that Calve does not run on: it can be imported, and whatever begins there raises."""

from __future__ import annotations

from importlib.metadata import version

from ._platform import unsupported

__version__ = version("calve")


class Failed(Exception):
    """Nothing raises it."""


class Handle:
    """Every operation begins with one."""

    def __init__(self) -> None:
        raise unsupported()


def end_all() -> None:
    """Nothing runs."""
