"""The systems that Calve runs on."""

from __future__ import annotations

import errno
import sys

from ._errors import CalveError, from_document


def is_supported() -> bool:
    """Return whether Calve runs on this system: Linux and macOS. Elsewhere ``calve.shutil`` is ``shutil``, and all else raises."""
    return sys.platform in ("linux", "darwin")


def unsupported() -> CalveError:
    return from_document(
        {
            "code": "ERR_CALVE_UNSUPPORTED",
            "message": f"calve does not run on {sys.platform}",
            "errno": errno.ENOTSUP,
            "path": None,
            "hint": "it runs on Linux and macOS; on Windows, use WSL2",
            "refused": None,
        }
    )
