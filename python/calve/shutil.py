"""The standard library's ``shutil``, with faster copies and deletions.

``copytree``, ``copyfile``, ``copy``, ``copy2``, ``move`` and ``rmtree`` are Calve's, with the same parameters, behaviour and errors. All other
names are the standard library's own. On systems that Calve does not run on, all are.
"""

import shutil as _standard
from shutil import *
from typing import TYPE_CHECKING

from ._platform import is_supported

__all__ = _standard.__all__  # noqa: PLE0605

# Their types are those of the standard library.
if not TYPE_CHECKING:
    if is_supported():
        from ._shutil import copy, copy2, copyfile, copytree, move, rmtree

    def __getattr__(name):
        return getattr(_standard, name)
