"""The types of receipts: the same documents as those of the program."""

# Generated from docs/schemas/receipts.json by `CALVE_REWRITE=1 cargo test -p calve-receipt`.

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Optional, TypedDict, Union, get_args

if TYPE_CHECKING:
    from ._errors import CalveError


class Undecodable(TypedDict):
    """A path that is not UTF-8."""

    bytes_base64: str
    """The bytes of the path in Base64."""


# A path as text. A path that is not UTF-8 is given as its bytes.
ReceiptPath = Union[str, Undecodable]


# The name of a strategy.
StrategyName = Literal["spare", "snapshot", "clonefile", "reflink", "copy", "hardlink", "overlay"]


class Refusal(TypedDict):
    """A strategy that was not used."""

    strategy: StrategyName
    """The strategy."""
    reason: str
    """The reason in a few words."""


class Spare(TypedDict):
    """A clone that was made ahead of time and handed over."""

    built_at: float
    """When it was built, in seconds since 1970."""
    checked: Literal["frozen", "watched", "walked"]
    """How it was made sure that it equals the source: `frozen` (the source is a template), `watched` (a watcher knows what has changed),
`walked` (every entry was compared with what was recorded of it)."""
    entries_checked: int
    """The number of entries that were looked at for that."""
    entries_updated: int
    """The number of entries that differed and were cloned again."""


class Entries(TypedDict):
    """The number of entries of each kind."""

    directories: int
    """Directories, with the root."""
    files: int
    """Regular files. Each inode counts once."""
    symlinks: int
    """Symbolic links."""
    fifos: int
    """Named pipes."""
    devices: int
    """Character and block devices."""
    hard_links: int
    """Further names of files that `files` counts."""


class Bytes(TypedDict):
    """The contents of regular files, in bytes."""

    apparent: int
    """The sum of the files' sizes."""
    shared: int
    """Bytes that the clone shares with the source."""
    written: int
    """Bytes that Calve wrote, without holes."""
    inlined: Optional[int]
    """Bytes that the file system copied because it keeps them inside its metadata. Null if `shared` contains them."""


# Files that were made in another way than the strategy's own.
FallBack = TypedDict(
    "FallBack",
    {
        # The way that was refused.
        "from": StrategyName,
        # The way that was used.
        "to": StrategyName,
        # The name of the system's error, such as `EXDEV`.
        "errno": str,
        # The number of files.
        "files": int,
        # The first of them, relative to the source.
        "first_path": ReceiptPath,
    },
)


class SkippedEntry(TypedDict):
    """An entry that was left out."""

    path: ReceiptPath
    """The entry's path."""
    reason: str
    """The reason in a few words."""


class _Warning(TypedDict):
    """Something that the user should know and that is not an error."""

    code: Literal[
        "attribute_not_kept",
        "cache_not_written",
        "cache_unusable",
        "clonefile_drops",
        "deleted_in_place",
        "hard_link_not_kept",
        "list_truncated",
        "nested_subvolumes",
        "not_independent",
        "not_scrubbed",
        "not_swept",
        "old_not_removed",
        "owner_not_kept",
        "set_id_dropped",
        "sharing_unknown",
        "swept",
        "times_not_kept",
        "trash_stuck",
        "xattr_not_kept",
    ]
    """A stable word for programs."""
    message: str
    """A sentence for people."""


class Warning(_Warning, total=False):
    """Something that the user should know and that is not an error."""

    path: ReceiptPath
    """The first path concerned. Absent if the warning is about no path."""


class _CloneReceipt(TypedDict):
    """The report of one clone."""

    schema: Literal["calve.clone/1"]
    """The kind of document and the version of its shape."""
    src: ReceiptPath
    """The source as given."""
    dst: ReceiptPath
    """The destination as given."""
    strategy: StrategyName
    """The strategy that was used."""
    refused: list[Refusal]
    """The better strategies that were not used."""
    entries: Optional[Entries]
    """The entries of the clone. Null if the strategy did not walk the tree."""
    bytes: Optional[Bytes]
    """The contents of the regular files. Null if the strategy did not walk the tree."""
    fell_back: list[FallBack]
    """Files that were made in another way than the strategy's own."""
    skipped: list[SkippedEntry]
    """Entries that are not in the clone, with paths relative to the source. At most 10,000."""
    changed: list[ReceiptPath]
    """Entries of the source that changed while they were cloned, relative to the source. At most 10,000."""
    warnings: list[Warning]
    """Other facts that the user should know."""
    elapsed_ms: float
    """The time in milliseconds from the start to the published clone."""


class CloneReceipt(_CloneReceipt, total=False):
    """The report of one clone."""

    spare: Spare
    """The spare that was handed over. Absent if the clone was made when it was asked for."""


class RemoveReceipt(TypedDict):
    """The report of one removal."""

    path: ReceiptPath
    """The path as given."""
    trash: Optional[ReceiptPath]
    """The path at which the tree waits to be deleted. Null if it is deleted."""
    deleted_entries: int
    """The number of entries that were deleted so far. A btrfs subvolume is one, whatever is in it: it is deleted as a whole."""
    warnings: list[Warning]
    """Other facts that the user should know."""
    elapsed_ms: float
    """The time that the removal took in milliseconds, without deletion in the background."""


class Place(TypedDict):
    """A path and its file system."""

    path: ReceiptPath
    """The path as given."""
    file_system: str
    """The type of the file system, such as `xfs`."""
    device: str
    """The device number as `major:minor`."""


class Offer(TypedDict):
    """A strategy and whether it can be used."""

    strategy: StrategyName
    """The strategy."""
    available: bool
    """True if the strategy can be used."""
    reason: Optional[str]
    """Why the strategy is not available. Null if it is."""
    remedy: Optional[str]
    """The condition that would make the strategy available. Null if it is available or nothing would."""


class ProbeReceipt(TypedDict):
    """The strategies that can be used between two directories."""

    schema: Literal["calve.probe/1"]
    """The kind of document and the version of its shape."""
    src: Place
    """The source."""
    dst: Place
    """The destination."""
    chosen: Optional[StrategyName]
    """The strategy that a clone would use. Null if nothing can be made at the destination."""
    strategies: list[Offer]
    """All strategies, in order of preference."""


# The kind of an error. A later version may have more.
ErrorCode = Literal[
    "ERR_CALVE_ABORTED",
    "ERR_CALVE_DB",
    "ERR_CALVE_DESTINATION_EXISTS",
    "ERR_CALVE_DESTINATION_INSIDE_SOURCE",
    "ERR_CALVE_EXISTS",
    "ERR_CALVE_GIT",
    "ERR_CALVE_INTERNAL",
    "ERR_CALVE_IO",
    "ERR_CALVE_IS_A_DIRECTORY",
    "ERR_CALVE_MISSING",
    "ERR_CALVE_NO_DEDUPE",
    "ERR_CALVE_NO_ROOM",
    "ERR_CALVE_NOT_A_DIRECTORY",
    "ERR_CALVE_NOT_A_FILE",
    "ERR_CALVE_NOT_CLONABLE",
    "ERR_CALVE_OTHER",
    "ERR_CALVE_OUTSIDE_ROOT",
    "ERR_CALVE_PARENT_MISSING",
    "ERR_CALVE_PATTERN",
    "ERR_CALVE_PERMISSION",
    "ERR_CALVE_PROTECTED",
    "ERR_CALVE_REGISTRY",
    "ERR_CALVE_REPLACE_UNSUPPORTED",
    "ERR_CALVE_REQUIREMENT_REFUSED",
    "ERR_CALVE_SAME",
    "ERR_CALVE_SOURCE_INSIDE_DESTINATION",
    "ERR_CALVE_STAGING_LOST",
    "ERR_CALVE_TEMPLATE",
    "ERR_CALVE_USAGE",
    "ERR_CALVE_VERIFY_FAILED",
    "ERR_CALVE_VOLUME",
]


class _UnsavedReceipt(TypedDict):
    """Something in a worktree, or in its entry, that exists nowhere else."""

    kind: Literal[
        "uncommitted",
        "staged",
        "hidden",
        "in_submodule",
        "operation",
        "commits",
        "reflog",
        "reference",
        "unpushed",
        "locked",
        "repository_of",
        "orphaned",
        "unreadable",
        "misplaced",
        "inside",
        "ignored",
        "service",
    ]
    """Its kind."""
    needs_force: bool
    """True if `-f` is needed to remove it. Other items are moved aside."""
    text: str
    """The item in words, for people."""


class UnsavedReceipt(_UnsavedReceipt, total=False):
    """Something in a worktree, or in its entry, that exists nowhere else."""

    inside: Optional[ReceiptPath]
    """The repository, worktree or submodule inside that it is in. Absent if it is in the worktree itself."""
    paths: list[ReceiptPath]
    """The files concerned. Absent if there are none."""
    commit: Optional[str]
    """The newest of the commits concerned. Absent if there are none."""
    commits: Optional[int]
    """How many commits there are, up to 1,000. Absent if there are none."""
    bytes: Optional[int]
    """The size of ignored files. Absent for other kinds."""


class _ErrorReceipt(TypedDict):
    """An error. Whoever talks to people words the `hint`, from the name of the `remedy`."""

    schema: Literal["calve.error/1"]
    """The kind of document and the version of its shape."""
    code: ErrorCode
    """A stable word for each kind of error."""
    message: str
    """The error in one sentence, for people."""
    errno: Optional[int]
    """The system's error number: its own, or the closest."""
    errno_name: Optional[str]
    """The name of that number, such as `ENOSPC`."""
    path: Optional[ReceiptPath]
    """The path that the error is about."""
    operation: Optional[str]
    """The operation that failed, in words."""
    hint: Optional[str]
    """The next step, in words."""
    refused: Optional[list[Refusal]]
    """The strategies that were refused, with their reasons."""
    remedy: Optional[str]
    """A stable name of what to do next."""


class ErrorReceipt(_ErrorReceipt, total=False):
    """An error. Whoever talks to people words the `hint`, from the name of the `remedy`."""

    unsaved: Optional[list[UnsavedReceipt]]
    """Everything in a worktree that exists nowhere else, if that is why it was not removed. Absent for other errors."""


class WriteFailure(TypedDict):
    """A file that was not written."""

    index: int
    """The index of the entry, counted from 0."""
    error: CalveError
    """Why the file was not written."""


class WriteReceipt(TypedDict):
    """The report of files that were written together."""

    schema: Literal["calve.write/1"]
    """The kind of document and the version of its shape."""
    files: int
    """The number of files written. Entries with one path may count once."""
    bytes: int
    """The size of their contents in bytes."""
    directories: int
    """The number of directories made."""
    threads: int
    """The largest number of threads that worked at the same time."""
    failures: list[WriteFailure]
    """The files that were not written, if errors were to be collected."""
    elapsed_ms: float
    """The time that writing took in milliseconds."""


class DbFile(TypedDict):
    """A file of a data directory."""

    path: ReceiptPath
    """The path, relative to the data directory."""
    bytes: int
    """The size in bytes."""


class _DbServer(TypedDict):
    """A database server."""

    name: str
    """The name of the server."""
    engine: str
    """The name of the engine, such as `postgres`."""
    template: Optional[str]
    """The template that the server was cloned from. Null if there is none."""
    url: str
    """The address as a URL, by the private socket."""
    tcp_url: Optional[str]
    """The address as a URL, by TCP, with the password. Null without TCP."""
    dsn: str
    """The address for the engine's own programs."""
    host: str
    """The host for the engine's own programs."""
    port: int
    """The port, which for PostgreSQL is part of the socket's name."""
    socket: ReceiptPath
    """The private socket."""
    user: str
    """The superuser."""
    password: Optional[str]
    """The password for TCP. Null without TCP."""
    database: str
    """A database that always exists."""
    tcp_port: Optional[int]
    """The port on 127.0.0.1. Null without TCP."""
    data_directory: ReceiptPath
    """The data directory."""
    pid: Optional[int]
    """The id of the server's first process. Null if the server is down."""
    strategy: Literal["spare", "snapshot", "clonefile", "reflink", "copy", "hardlink", "overlay", "init"]
    """The strategy by which the data directory was cloned; `init` if it was made anew."""
    refused: list[str]
    """The better strategies, and why they were not used."""
    copied_on_first_open: list[DbFile]
    """Files that an overlay copies when the server first opens them for writing."""
    clone_ms: Optional[float]
    """How long cloning took, in milliseconds. Null if nothing was cloned for this start."""
    ready_ms: float
    """The time from the start of cloning to the first answer, in milliseconds."""
    started_unix_s: int
    """The time of the start, in seconds since 1970."""
    expires_unix_s: Optional[int]
    """The time at which the server ends, in seconds since 1970. Null if it has no limit."""
    owner_pid: Optional[int]
    """The process that the server ends with. Null if there is none."""


class DbServer(_DbServer, total=False):
    """A database server."""

    environment: dict[str, Optional[str]]
    """The environment variables by which programs find this server and no other. Null: the variable must not be set."""
    standby: bool
    """True if the server was started ahead of time, and was waiting when it was asked for. Left out if not."""
    down: bool
    """True if the server is down, because a reset or a mark could not start it again. Left out if not."""


# A way to clone.
Strategy = Literal["spare", "snapshot", "clonefile", "reflink", "copy", "hardlink"]
STRATEGIES = get_args(Strategy)


# A property without which no clone is made.
Requirement = Literal["instant", "cow", "stable"]
REQUIREMENTS = get_args(Requirement)
