"""The types of receipts: the same documents as those of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from ._errors import CalveError


class Undecodable(TypedDict):
    """A path that is not UTF-8, as Base64."""

    bytes_base64: str


ReceiptPath = Union[str, Undecodable]


class Refusal(TypedDict):
    """A strategy that was not used, and why."""

    strategy: str
    reason: str


class _Warning(TypedDict):
    code: str
    message: str


class Warning(_Warning, total=False):
    """A warning; ``path`` is the first path concerned."""

    path: ReceiptPath


class Entries(TypedDict):
    """The number of entries of each kind."""

    directories: int
    files: int
    symlinks: int
    fifos: int
    devices: int
    hard_links: int


class Bytes(TypedDict):
    """How the contents were cloned."""

    apparent: int
    shared: int
    written: int
    inlined: int


class FellBack(TypedDict):
    """Files that another strategy than the chosen one had to make."""

    to: str
    errno: str
    files: int
    first_path: ReceiptPath


# `from` is a keyword.
FellBackFrom = TypedDict("FellBackFrom", {"from": str})


class FallBack(FellBack, FellBackFrom):
    """Files that another strategy than the chosen one had to make, and which one that was."""


class Skipped(TypedDict):
    """What could not be kept."""

    path: ReceiptPath
    reason: str


class CloneReceipt(TypedDict):
    """What ``clone_tree`` and ``clone_file`` did (``calve.clone/1``).

    ``entries`` and ``bytes`` are ``None`` where the strategy did not walk the tree.
    """

    schema: Literal["calve.clone/1"]
    src: ReceiptPath
    dst: ReceiptPath
    strategy: str
    refused: list[Refusal]
    entries: Optional[Entries]
    bytes: Optional[Bytes]
    fell_back: list[FallBack]
    skipped: list[Skipped]
    changed: list[ReceiptPath]
    warnings: list[Warning]
    elapsed_ms: float


class RemoveReceipt(TypedDict):
    """What ``remove_tree`` did; ``trash`` is where the tree waits to be deleted, ``None`` when it is deleted."""

    path: ReceiptPath
    trash: Optional[ReceiptPath]
    deleted_entries: int
    warnings: list[Warning]
    elapsed_ms: float


class Place(TypedDict):
    """A directory and its file system."""

    path: ReceiptPath
    file_system: str
    device: str


class Offer(TypedDict):
    """Whether a strategy can be used between two places."""

    strategy: str
    available: bool
    reason: Optional[str]
    remedy: Optional[str]


class ProbeReceipt(TypedDict):
    """What two places can do (``calve.probe/1``)."""

    schema: Literal["calve.probe/1"]
    src: Place
    dst: Place
    chosen: Optional[str]
    strategies: list[Offer]


class WriteFailure(TypedDict):
    """An entry that could not be written, counted from 0."""

    index: int
    error: CalveError


class WriteReceipt(TypedDict):
    """What ``write_files`` did (``calve.write/1``)."""

    schema: Literal["calve.write/1"]
    files: int
    bytes: int
    directories: int
    threads: int
    failures: list[WriteFailure]
    elapsed_ms: float
