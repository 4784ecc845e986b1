"""Errors: all are ``OSError`` with ``errno`` and ``filename``, and say what to do next."""

from __future__ import annotations

import base64
import errno as numbers
import json
import os
from typing import TYPE_CHECKING, Any, Literal, Optional, Sequence, Union

if TYPE_CHECKING:
    from ._receipts import ErrorCode, Refusal


class CalveError(OSError):
    """Why something could not be done."""

    code: Union[ErrorCode, Literal["ERR_CALVE_NO_PROGRAM", "ERR_CALVE_OTHER_VERSION", "ERR_CALVE_UNSUPPORTED"]] = "ERR_CALVE_OTHER"
    """What kind of error it is: ``ERR_CALVE_...``."""
    hint: Optional[str] = None
    """What to do next."""
    refused: Sequence[Refusal] = ()
    """With ``ERR_CALVE_REQUIREMENT_REFUSED``: the strategies, and why each was refused."""

    def __str__(self) -> str:
        text = str(self.strerror) if self.strerror is not None else super().__str__()
        return f"{text}\nhint: {self.hint}" if self.hint else text


class CalveMissing(CalveError, FileNotFoundError):
    """Something is not there."""


class CalveExists(CalveError, FileExistsError):
    """Something is there already."""


class CalveNotPermitted(CalveError, PermissionError):
    """The system, or Calve to protect something, does not permit it."""


class CalveIsADirectory(CalveError, IsADirectoryError):
    """The path is a directory, where a file is needed."""


class CalveNotADirectory(CalveError, NotADirectoryError):
    """The path is not a directory, where one is needed."""


class Cancelled(CalveError):
    """A ``Cancellation`` ended it."""


KINDS = {
    numbers.ENOENT: CalveMissing,
    numbers.EEXIST: CalveExists,
    numbers.EACCES: CalveNotPermitted,
    numbers.EPERM: CalveNotPermitted,
    numbers.EISDIR: CalveIsADirectory,
    numbers.ENOTDIR: CalveNotADirectory,
}


def path_of(value: Any) -> Any:
    """Return a path of a receipt, with undecodable bytes as ``os.fsdecode`` has them."""
    if isinstance(value, dict):
        return os.fsdecode(base64.b64decode(value["bytes_base64"]))
    return value


def from_document(document: Any) -> CalveError:
    if isinstance(document, str):
        document = json.loads(document)
    number = document["errno"] or numbers.EIO
    kind = Cancelled if document["code"] == "ERR_CALVE_ABORTED" else KINDS.get(number, CalveError)
    error = kind(number, document["message"], path_of(document["path"]))
    error.code = document["code"]
    error.hint = document["hint"]
    error.refused = document["refused"] or []
    return error
