"""The functions of ``calve.shutil`` that are not the standard library's own.

What they cannot do faster without a visible difference, or at all, they leave to the standard library: its errors are what callers see.
"""

from __future__ import annotations

import errno
import fcntl
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
    # A Python that was built for an old C library does not have it.
    while hasattr(os, "copy_file_range"):
        try:
            count = os.copy_file_range(src.fileno(), dst.fileno(), 1 << 30)
        except OSError as error:
            if done == 0 and error.errno != errno.ENOSPC:
                break
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
    if (
        not sys.platform.startswith("linux")
        # Open files are used from where they are.
        or any(isinstance(one, int) for one in (src, dst))
        or not _regular(src)
        or not (not os.path.lexists(dst) or _regular(dst) and not os.path.samefile(src, dst))
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
        except OSError as error:
            if error.filename is None:
                error.filename, error.filename2 = src, dst
            raise
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


class Root:
    """A directory of the source that the destination does not have: it is copied in one go."""

    def __init__(self, src: Any, dst: Any, entry: Any = None) -> None:
        self.src, self.dst = src, dst
        self.entry = entry
        """The directory that it was found in, and its name there."""
        self.left_out: list[bytes] = []
        """The paths in it that are ignored."""

    def copy(self, symlinks: bool) -> Optional[dict[Any, set[Any]]]:
        """Return by directory the names with which something is left to be done, or ``None``: then nothing has been done."""
        src = os.path.realpath(self.src) if os.path.islink(self.src) else self.src
        given = (os.fsencode(src), os.fsencode(self.dst), symlinks, self.left_out)
        try:
            followed = Operation(lambda handle: _native.copy_plain(*given, handle), None, None, b"", False).run()
        except CalveError:
            return None
        here = os.fspath(self.src)
        left: dict[Any, set[Any]] = {}
        for text in followed:
            path = text.encode("latin-1")
            while path:
                path, name = os.path.split(path)
                directory = os.path.join(here, like(here, path)) if path else here
                left.setdefault(directory, set()).add(like(here, name))
        return left


def like(given: Any, name: bytes) -> Any:
    return name if isinstance(given, bytes) else os.fsdecode(name)


class Survey:
    """What can be copied in one go, and what the caller's ``ignore`` has answered on the way."""

    def __init__(self, symlinks: bool, ignore: Ignore) -> None:
        self.symlinks, self.ignore = symlinks, ignore
        self.answers: dict[Any, Any] = {}
        """By directory: the ignored names, whatever else was returned, or the exception that was raised instead."""
        self.roots: list[Root] = []
        self.merged: list[Any] = []
        """The symlinks to directories that the destination has where the source has directories."""
        self.copied: dict[Any, set[Any]] = {}
        """By directory that the destination has already: the names with which nothing is left to be done."""
        self.left: dict[Any, set[Any]] = {}
        """By directory of a root that has been copied: the names with which something is."""
        self.is_complete = False

    def finds_roots(self, src: Any, dst: Any, dirs_exist_ok: bool) -> bool:
        """Return whether there is anything to copy in one go. Then the directory above ``dst`` is there."""
        try:
            # The standard library makes nothing of two kinds of paths.
            is_one_kind = isinstance(os.fspath(src), bytes) == isinstance(os.fspath(dst), bytes)
            is_new = not os.path.lexists(dst)
            if not is_one_kind or not (is_new or dirs_exist_ok):
                return False
            if is_new:
                self.begin(Root(src, dst))
            else:
                self.look(src, dst, None, b"")
            into = [dst, *self.merged]
            if any(is_within(directory, src) or is_within(src, directory) for directory in into):
                # Each directory is listed before the next one is made.
                return False
            if is_new:
                os.makedirs(os.path.dirname(os.path.abspath(dst)), exist_ok=True)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            # Whatever it is, the standard library runs into it at the right moment.
            return False
        return bool(self.roots)

    def look(self, src: Any, dst: Any, root: Optional[Root], below: bytes) -> None:
        """Find the roots in a directory, or what is ignored in its root."""
        here = os.fspath(src)
        if root is None and os.path.islink(dst):
            self.merged.append(dst)
        with os.scandir(src) as listing:
            if root is not None and self.ignore is None:
                return
            entries = list(listing)
        ignored = self.ask(here, [entry.name for entry in entries])
        for entry in entries:
            path = os.path.join(below, os.fsencode(entry.name))
            if entry.name in ignored:
                if root is not None:
                    root.left_out.append(path)
            elif entry.is_dir(follow_symlinks=False):
                into = os.path.join(dst, entry.name)
                if root is not None:
                    self.look(entry.path, into, root, path)
                elif os.path.lexists(into):
                    self.look(entry.path, into, None, b"")
                else:
                    self.begin(Root(entry.path, into, (here, entry.name)))

    def begin(self, root: Root) -> None:
        self.roots.append(root)
        self.look(root.src, root.dst, root, b"")

    def ask(self, path: Any, names: list[Any]) -> Any:
        if self.ignore is None:
            return ()
        if path not in self.answers:
            try:
                answer = self.answers[path] = self.ignore(path, names)
            except BaseException as error:
                self.answers[path] = error
                raise
            try:
                # It may be something that can be looked through only once.
                self.answers[path] = {name for name in names if name in answer}
            except Exception:
                # The standard library meets that when it has made the directory.
                pass
        if isinstance(self.answers[path], BaseException):
            raise self.answers[path]
        return self.answers[path]

    def copy(self) -> bool:
        """Copy the roots. Return whether any has been copied."""
        anything = False
        for root in self.roots:
            left = root.copy(self.symlinks)
            if left is None:
                continue
            anything = True
            self.left.update(left)
            if root.entry is None:
                self.is_complete = not left
            elif not left:
                self.copied.setdefault(root.entry[0], set()).add(root.entry[1])
        return anything

    def rest(self, src: Any, names: list[Any]) -> Any:
        """Answer as an ``ignore`` that leaves what has not been copied."""
        if src in self.left:
            return set(names) - self.left[src]
        return self.copied[src].union(self.ask(src, names)) if src in self.copied else self.ask(src, names)


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
    # On macOS the standard library's copies keep flags and drop extended attributes.
    if copy_function is copy2 and sys.platform.startswith("linux") and survey.finds_roots(src, dst, dirs_exist_ok):
        sys.audit("shutil.copytree", src, dst)
        if survey.copy():
            if survey.is_complete:
                return dst
            dirs_exist_ok = True
    return _copytree(
        src,
        dst,
        symlinks=symlinks,
        ignore=survey.rest if survey.answers or survey.copied or survey.left else ignore,
        copy_function=copy_function,
        ignore_dangling_symlinks=ignore_dangling_symlinks,
        dirs_exist_ok=dirs_exist_ok,
    )


def move(src: Any, dst: Any, copy_function: Callable[[Any, Any], Any] = copy2) -> Any:
    """Move a file or a directory. Return where it is now."""
    return _move(src, dst, copy_function=copy_function)


def rmtree(path: Any, ignore_errors: bool = False, onerror: Any = None, **options: Any) -> None:
    """Delete a directory and all that is in it."""
    if options.get("dir_fd") is None and options.keys() <= RMTREE_OPTIONS:
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
