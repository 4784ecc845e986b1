"""Instant, isolated, writable copies of files and directories, and many small files written or read at once.

The work is done by native threads with the GIL released; Ctrl-C and a ``Cancellation`` stop it. ``calve.aio`` has the same functions for
``asyncio``.
"""

import sys

from ._platform import is_supported

if not is_supported():
    from . import _unsupported

    sys.modules[f"{__name__}._native"] = _unsupported
# What is not tested does not run: with the native module the interpreter would take the GIL for every other thread too.
elif not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError(
        "calve is not tested without the GIL, and this is a free-threaded Python: set PYTHON_GIL=1 for it, or use another build of Python",
        name=__name__,
    )

try:
    from ._native import __version__ as __version__
except ImportError as error:
    if "subinterpreter" in str(error):
        raise ImportError(
            "calve works in the main interpreter of a process only, and this is a subinterpreter: import it there, or in a process of its own",
            name=__name__,
        ) from error
    raise

from ._errors import (
    CalveError,
    CalveExists,
    CalveIsADirectory,
    CalveMissing,
    CalveNotADirectory,
    CalveNotPermitted,
    Cancelled,
)
from ._files import read_files, write_files
from ._receipts import CloneReceipt, ProbeReceipt, RemoveReceipt, WriteReceipt
from ._trees import Cancellation, clone_file, clone_tree, probe, remove_tree

__all__ = [
    "CalveError",
    "CalveExists",
    "CalveIsADirectory",
    "CalveMissing",
    "CalveNotADirectory",
    "CalveNotPermitted",
    "Cancellation",
    "Cancelled",
    "CloneReceipt",
    "ProbeReceipt",
    "RemoveReceipt",
    "WriteReceipt",
    "__version__",
    "clone_file",
    "clone_tree",
    "is_supported",
    "probe",
    "read_files",
    "remove_tree",
    "write_files",
]
