"""Errors: all are ``OSError`` with ``errno`` and ``filename``, and say what to do next."""

from __future__ import annotations

import base64
import errno as numbers
import json
import os
import re
import sys
from typing import Any, Optional


class CalveError(OSError):
    """Why something could not be done."""

    code: str = "ERR_CALVE_OTHER"
    """What kind of error it is: ``ERR_CALVE_...``."""
    hint: Optional[str] = None
    """What to do next."""
    refused: list[dict[str, str]]
    """With ``ERR_CALVE_REQUIREMENT_REFUSED``: the strategies, and why each was refused."""

    def __str__(self) -> str:
        return f"{self.strerror}\nhint: {self.hint}" if self.hint else str(self.strerror)


class CalveMissing(CalveError, FileNotFoundError):
    """Something is not there."""


class CalveExists(CalveError, FileExistsError):
    """Something is there already."""


class CalveNotPermitted(CalveError, PermissionError):
    """The system, or Calve to protect something, does not permit it."""


class Cancelled(CalveError):
    """A ``Cancellation`` ended it."""


KINDS = {
    numbers.ENOENT: CalveMissing,
    numbers.EEXIST: CalveExists,
    numbers.EACCES: CalveNotPermitted,
    numbers.EPERM: CalveNotPermitted,
}


def path_of(value: Any) -> Any:
    """A path of a receipt, with undecodable bytes as ``os.fsdecode`` has them."""
    if isinstance(value, dict):
        return os.fsdecode(base64.b64decode(value["bytes_base64"]))
    return value


def as_here(text: str) -> str:
    """What the program's texts name, by the names that it has in this package."""
    for there, here in (
        ("run `calve probe SRC DST`", "call `probe(src, dst)`"),
        ("`calve probe SRC DST`", "`probe(src, dst)`"),
        ("`calve probe`", "`probe`"),
        ("`calve rm`", "`remove_tree`"),
    ):
        text = text.replace(there, here)
    return re.sub("`--([a-z]+)(?: ([a-z]+))?`", lambda found: f'`{found[1]}="{found[2]}"`' if found[2] else f"`{found[1]}`", text)


def from_document(document: Any) -> CalveError:
    if isinstance(document, str):
        document = json.loads(document)
    number = document["errno"] or numbers.EIO
    if sys.platform == "win32":
        # The system's number, of which Python makes the errno that it uses there.
        windows, number = number, OSError(0, "", None, number).errno or numbers.EIO
    kind = Cancelled if document["code"] == "ERR_CALVE_ABORTED" else KINDS.get(number, CalveError)
    refused = document["code"] == "ERR_CALVE_REQUIREMENT_REFUSED"
    error = kind(number, as_here(document["message"]) if refused else document["message"], path_of(document["path"]))
    if sys.platform == "win32":
        error.winerror = windows
    error.code = document["code"]
    error.hint = document["hint"] and as_here(document["hint"])
    error.refused = document["refused"] or []
    return error
