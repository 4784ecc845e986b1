"""Instant, isolated, writable copies of files and directories, and many small files written or read at once.

The work is done by native threads with the GIL released; Ctrl-C and a ``Cancellation`` stop it.
"""

from ._errors import CalveError, CalveExists, CalveMissing, CalveNotPermitted, Cancelled
from ._files import read_files, write_files
from ._trees import Cancellation, clone_file, clone_tree, probe, remove_tree

__all__ = [
    "CalveError",
    "CalveExists",
    "CalveMissing",
    "CalveNotPermitted",
    "Cancellation",
    "Cancelled",
    "clone_file",
    "clone_tree",
    "probe",
    "read_files",
    "remove_tree",
    "write_files",
]
