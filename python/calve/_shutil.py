"""The functions of ``calve.shutil`` that are not the standard library's own.

What they cannot do faster without a visible difference, or at all, they leave to the standard library: its errors are what callers see.
"""

from __future__ import annotations

import errno
import inspect
import os
import shutil as _standard
import stat
import sys
from pathlib import Path

# Programs may put Calve's functions in their place.
from shutil import copyfile as _copyfile
from shutil import copytree as _copytree
from shutil import move as _move
from shutil import rmtree as _rmtree
from typing import Any, Callable, Iterable, Optional

from . import _native
from ._errors import CalveError
from ._trees import Operation

if sys.platform != "win32":
    import fcntl

_FICLONE = 0x40049409
"""Linux: makes one file share the extents of another."""

Ignore = Optional[Callable[[Any, "list[Any]"], Iterable[Any]]]


def _regular(path: Any) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _open(path: Any, flags: int) -> int:
    """Open a file without changing its time of access, where its owner may ask for that."""
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError:
        return os.open(path, flags)


def _transfer(src: Any, dst: Any) -> None:
    """Fill an open, empty file with the contents of another."""
    try:
        fcntl.ioctl(dst.fileno(), _FICLONE, src.fileno())
        return
    except OSError:
        pass
    done = 0
    while True:
        try:
            count = os.copy_file_range(src.fileno(), dst.fileno(), 1 << 30)
        except OSError as error:
            if done == 0 and error.errno != errno.ENOSPC:
                break
            error.filename, error.filename2 = src.name, dst.name
            raise
        if count == 0 and done > 0:
            return
        if count == 0:
            # It is empty, or the kernel makes it up, as in /proc.
            break
        done += count
    _standard.copyfileobj(src, dst)


def copyfile(src: Any, dst: Any, *, follow_symlinks: bool = True) -> Any:
    """Copy the contents of a file, sharing them where the file system can. Return ``dst``."""
    new = not os.path.lexists(dst)
    if (
        not sys.platform.startswith("linux")
        or not _regular(src)
        or not (new or _regular(dst) and not os.path.samefile(src, dst))
        or not follow_symlinks
        and os.path.islink(src)
    ):
        return _copyfile(src, dst, follow_symlinks=follow_symlinks)
    sys.audit("shutil.copyfile", src, dst)
    with open(src, "rb", opener=_open) as given:
        try:
            with open(dst, "wb") as made:
                _transfer(given, made)
        except IsADirectoryError as error:
            if os.path.exists(dst):
                raise
            raise FileNotFoundError(f"Directory does not exist: {dst}") from error
    return dst


def _inside(src: Any, dst: Any) -> Any:
    return os.path.join(dst, os.path.basename(src)) if os.path.isdir(dst) else dst


def copy(src: Any, dst: Any, *, follow_symlinks: bool = True) -> Any:
    """Copy a file and its mode, to ``dst`` or into the directory ``dst``. Return the path of the new file."""
    dst = _inside(src, dst)
    copyfile(src, dst, follow_symlinks=follow_symlinks)
    _standard.copymode(src, dst, follow_symlinks=follow_symlinks)
    return dst


def copy2(src: Any, dst: Any, *, follow_symlinks: bool = True) -> Any:
    """Copy a file and its metadata, to ``dst`` or into the directory ``dst``. Return the path of the new file."""
    dst = _inside(src, dst)
    copyfile(src, dst, follow_symlinks=follow_symlinks)
    _standard.copystat(src, dst, follow_symlinks=follow_symlinks)
    return dst


if sys.platform == "win32":
    # There the standard library copies in one call of the system's, which shares what can be shared.
    copyfile, copy, copy2 = _standard.copyfile, _standard.copy, _standard.copy2


class Root:
    """A directory of the source that the destination does not have: it is copied in one go."""

    def __init__(self, src: Any, dst: Any) -> None:
        self.src, self.dst = src, dst
        self.left_out: list[bytes] = []
        """The paths in it that are not copied."""
        self.copied: dict[Any, set[Any]] = {}
        """By directory: the names that need nothing more."""

    def copy(self) -> bool:
        """Return whether it has been copied; otherwise nothing has been done."""
        src = os.path.realpath(self.src) if os.path.islink(self.src) else self.src
        given = (os.fsencode(src), os.fsencode(self.dst), self.left_out)
        try:
            Operation(lambda handle: _native.copy_plain(*given, handle), None, None, b"", False).run()
        except CalveError:
            return False
        return True


class Survey:
    """What can be copied in one go, found by one pass over the source, and what the caller's ``ignore`` has answered on the way."""

    def __init__(self, symlinks: bool, ignore: Ignore) -> None:
        self.symlinks, self.ignore = symlinks, ignore
        self.answers: dict[Any, Any] = {}
        """By directory: the ignored names, or the exception that was raised instead."""
        self.roots: list[Root] = []
        self.done: dict[Any, set[Any]] = {}
        """By directory: the names with which nothing is left to be done."""

    def look(self, src: Any, dst: Any, root: Optional[Root], below: bytes) -> bool:
        """Look through a directory. Return whether something is left to be done when its root has been copied."""
        with os.scandir(src) as listing:
            entries = list(listing)
        if root is None and not os.path.lexists(dst):
            root = Root(src, dst)
            self.roots.append(root)
        here = os.fspath(src)
        ignored = self.done[here] = set(self.ask(here, [entry.name for entry in entries]))
        # A directory that is there already gets the source's metadata.
        rest = root is None
        for entry in entries:
            name, path = entry.name, os.path.join(below, os.fsencode(entry.name))
            if name in ignored:
                copied = False
            elif entry.is_symlink():
                copied = self.symlinks and root is not None
                rest = rest or not copied
            elif entry.is_dir():
                if self.look(entry.path, os.path.join(dst, name), root, b"" if root is None else path):
                    rest = True
                    continue
                if root is None:
                    # It is a root itself.
                    self.roots[-1].copied.setdefault(here, set()).add(name)
                copied = True
            elif entry.is_file():
                copied = root is not None
            else:
                raise ValueError(f"{entry.path} is a special file")
            if root is None:
                continue
            if copied:
                root.copied.setdefault(here, set()).add(name)
            else:
                root.left_out.append(path)
        if rest and root is not None and os.stat(src).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            raise ValueError(f"{src} would be read-only before everything is in it")
        return rest

    def ask(self, path: Any, names: list[Any]) -> Any:
        if self.ignore is None:
            return ()
        if path not in self.answers:
            try:
                ignored = self.ignore(path, names)
                self.answers[path] = {name for name in names if name in ignored}
            except BaseException as error:
                self.answers[path] = error
        if isinstance(self.answers[path], BaseException):
            raise self.answers[path]
        return self.answers[path]

    def copy(self) -> bool:
        """Copy the roots. Return whether anything has been copied."""
        anything = False
        for root in self.roots:
            if root.copy():
                anything = True
                for directory, names in root.copied.items():
                    self.done[directory] |= names
        return anything

    def rest(self, src: Any, names: list[Any]) -> Any:
        """Answer as an ``ignore`` that leaves what has not been copied."""
        return self.done[src] if src in self.done else self.ask(src, names)


def is_within(path: Any, directory: Any) -> bool:
    inner, outer = Path(os.path.realpath(os.fsdecode(path))), Path(os.path.realpath(os.fsdecode(directory)))
    return outer == inner or outer in inner.parents


def copytree(
    src: Any,
    dst: Any,
    symlinks: bool = False,
    ignore: Ignore = None,
    copy_function: Callable[[Any, Any], Any] = copy2,
    ignore_dangling_symlinks: bool = False,
    dirs_exist_ok: bool = False,
) -> Any:
    """Copy a directory and all that is in it. Return ``dst``."""
    survey = Survey(symlinks, ignore)
    is_new = not os.path.lexists(dst)
    if copy_function is copy2 and sys.platform != "win32" and (is_new or dirs_exist_ok):
        try:
            rest = survey.look(src, dst, None, b"")
            if is_within(dst, src):
                # Each directory is listed before the next one is made.
                survey.roots = []
            elif is_new:
                os.makedirs(os.path.dirname(os.path.abspath(dst)), exist_ok=True)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            # Whatever it is, the standard library runs into it at the right moment.
            survey.roots = []
        if survey.roots:
            sys.audit("shutil.copytree", src, dst)
            if survey.copy():
                if not rest:
                    return dst
                dirs_exist_ok = True
    return _copytree(
        src,
        dst,
        symlinks=symlinks,
        ignore=survey.rest if survey.done else ignore,
        copy_function=copy_function,
        ignore_dangling_symlinks=ignore_dangling_symlinks,
        dirs_exist_ok=dirs_exist_ok,
    )


def move(src: Any, dst: Any, copy_function: Callable[[Any, Any], Any] = copy2) -> Any:
    """Move a file or a directory. Return where it is now."""
    return _move(src, dst, copy_function=copy_function)


def rmtree(path: Any, ignore_errors: bool = False, onerror: Any = None, **options: Any) -> None:
    """Delete a directory and all that is in it."""
    if sys.platform != "win32" and options.get("dir_fd") is None and options.keys() <= RMTREE_OPTIONS:
        try:
            directory = os.fsencode(path) if stat.S_ISDIR(os.lstat(path).st_mode) else None
        except (OSError, TypeError, ValueError):
            directory = None
        if directory is not None:
            sys.audit("shutil.rmtree", path, None)
            try:
                Operation(lambda handle: _native.delete_tree(directory, handle), None, None, b"", False).run()
                return
            except CalveError:
                # It meets again what is left, with what goes wrong there.
                pass
    _rmtree(path, ignore_errors, onerror, **options)


RMTREE_OPTIONS = frozenset(inspect.signature(_rmtree).parameters)
rmtree.avoids_symlink_attacks = _rmtree.avoids_symlink_attacks  # type: ignore[attr-defined]
