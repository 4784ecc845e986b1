//! Making one entry of the clone: a regular file, a symlink, a FIFO, a device, or an empty directory to be filled later.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

use super::contents::{Contents, MovedBytes, ReflinkOutcome, open_contents, size, stored};
use super::links::Claim;
use super::metadata::{Target, same_version};
use super::request::Files;
use super::worker::{BorrowedPair, FillWorker, Later};
use crate::error::{Error, StatedRequirement};
use crate::options::internal::KeptLinks;
use crate::sys::{self, XattrTarget};
use crate::tree::file_set::{FileSet, is_sqlite};
use crate::tree::names::Names;
use crate::tree::node::{Node, open_source};
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::{SkipReason, WarningCode};
use crate::vocabulary::strategy::{Requirement, Strategy};

pub(super) enum EntryOutcome {
    Yes,
    /// It has become something else since the directory was read.
    OtherKind,
    Gone,
}

/// How often an entry may turn into something else before it is left out.
const PATIENCE: usize = 8;

/// Part of the time of a subtree's call for which others get the disk then: without it shells did not start (worktrunk's issue 640).
const PAUSE_SHARE: u32 = 10;

impl FillWorker<'_> {
    /// Makes the entry `name`. A directory is made empty, and a file that belongs to others is held back: both are added to `later`.
    pub(super) fn entry(
        &mut self,
        at: BorrowedPair<'_>,
        name: &CStr,
        kind: FileType,
        later: &mut Later,
    ) -> Result<(), Error> {
        if self.is_calves_own(at, name) {
            return Ok(());
        }
        let mut kind = kind;
        for attempt in 0..PATIENCE {
            if kind == FileType::Unknown {
                kind = match rustix::fs::statat(at.src, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(Errno::NOENT) => break,
                    Err(errno) => return Err(self.src_error(Operation::Stat, &at.node.path_of(name), errno)),
                };
            }
            if attempt == 0 && self.excluded(at, name, kind == FileType::Directory) {
                return Ok(());
            }
            let made = match kind {
                _ if self.is_refused(kind) => {
                    let path = self.fill.shown(self.fill.src_path, &at.node.path_of(name));
                    return Err(Error::NotClonable { path, kind: "symlink, FIFO, socket or device" });
                }
                FileType::Directory => match self.whole_directory(at, name)? {
                    Some(made) => Ok(made),
                    None => self.empty_directory(at, name, &mut later.below),
                },
                FileType::RegularFile => self.regular_file(at, name, &mut later.held_back),
                FileType::Symlink => self.symlink(at, name),
                FileType::Socket => {
                    self.fill.notes.skipped(at.node.path_of(name), SkipReason::Socket);
                    Ok(EntryOutcome::Yes)
                }
                _ => self.special_file(at, name),
            }?;
            match made {
                EntryOutcome::Yes if attempt == 0 => return Ok(()),
                EntryOutcome::Yes => {
                    self.fill.notes.changed(at.node.path_of(name));
                    return Ok(());
                }
                EntryOutcome::OtherKind => kind = FileType::Unknown,
                EntryOutcome::Gone => break,
            }
        }
        self.vanished(at.node.path_of(name))
    }

    /// Returns whether a plain copy fails because of an entry of that kind.
    fn is_refused(&self, kind: FileType) -> bool {
        let Some(plain) = self.fill.options.internal.plain.as_ref() else { return false };
        match kind {
            FileType::Directory | FileType::RegularFile => false,
            FileType::Symlink => matches!(plain.links, KeptLinks::Refuse),
            _ => true,
        }
    }

    /// Clones a subtree in one call, where the strategy does that. Returns `None` where its entries are to be made one by one.
    fn whole_directory(&mut self, at: BorrowedPair<'_>, name: &CStr) -> Result<Option<EntryOutcome>, Error> {
        let Files::Clonefile { whole } = self.fill.files else { return Ok(None) };
        let path = at.node.path_of(name);
        let Some(entries) = whole.get(&path) else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let src = match open_source(at.src, name, flags) {
            Ok(src) => src,
            Err(Errno::NOENT) => return Ok(Some(EntryOutcome::Gone)),
            Err(Errno::LOOP | Errno::NOTDIR) => return Ok(Some(EntryOutcome::OtherKind)),
            Err(errno) => return Err(self.src_error(Operation::OpenDirectory, &path, errno)),
        };
        let started = Instant::now();
        match sys::clone_directory(src.as_fd(), at.dst, name) {
            Ok(()) => {
                std::thread::sleep(started.elapsed() / PAUSE_SHARE);
                self.fill.options.progress.add(*entries, 0);
                Ok(Some(EntryOutcome::Yes))
            }
            // Its entries are cloned one by one, and each may be copied.
            Err(errno) if sys::permits_copy(errno) => Ok(None),
            // Something in it cannot be read: its entries tell what.
            Err(Errno::ACCESS) => Ok(None),
            Err(errno) => self.create_failed(at, name, Operation::CloneDirectory, errno).map(Some),
        }
    }

    fn empty_directory(&self, at: BorrowedPair<'_>, name: &CStr, below: &mut Names) -> Result<EntryOutcome, Error> {
        match rustix::fs::mkdirat(at.dst, name, Mode::RWXU) {
            Ok(()) => {
                below.push(FileType::Directory, name);
                Ok(EntryOutcome::Yes)
            }
            Err(errno) => self.create_failed(at, name, Operation::CreateDirectory, errno),
        }
    }

    pub(super) fn regular_file(
        &mut self,
        at: BorrowedPair<'_>,
        name: &CStr,
        held_back: &mut Names,
    ) -> Result<EntryOutcome, Error> {
        if self.holds_back && FileSet::from_name(name.to_bytes()).is_some() {
            held_back.push(FileType::RegularFile, name);
            return Ok(EntryOutcome::Yes);
        }
        let src = match open_contents(at.src, name, || self.pool.stopped()) {
            Ok(src) => src,
            Err(Errno::CANCELED) => return Err(Error::Interrupted),
            Err(Errno::NOENT) => return Ok(EntryOutcome::Gone),
            // A symlink, a socket, a device without a driver.
            Err(Errno::LOOP | Errno::NXIO | Errno::NODEV) => return Ok(EntryOutcome::OtherKind),
            Err(errno) if self.may_skip(errno, || at.node.path_of(name)) => return Ok(EntryOutcome::Yes),
            Err(errno) => return Err(self.src_error(Operation::Open, &at.node.path_of(name), errno)),
        };
        let stat = rustix::fs::fstat(&src).map_err(|e| self.src_error(Operation::Stat, &at.node.path_of(name), e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(EntryOutcome::OtherKind);
        }
        if self.holds_back && is_sqlite(src.as_fd(), size(&stat)) {
            held_back.push(FileType::RegularFile, name);
            return Ok(EntryOutcome::Yes);
        }
        self.check_frozen(&stat, || at.node.path_of(name))?;
        if let Files::Hardlink = self.fill.files {
            return self.link_to_source(at, name, src.as_fd(), &stat);
        }
        self.once_per_inode(at, name, &stat, |worker, created| {
            worker.contents_and_metadata(at, name, src.as_fd(), &stat, created)
        })
    }

    /// Makes the first name of an inode, and links every further one to it.
    fn once_per_inode(
        &mut self,
        at: BorrowedPair<'_>,
        name: &CStr,
        stat: &Stat,
        make: impl FnOnce(&mut Self, &mut dyn FnMut()) -> Result<EntryOutcome, Error>,
    ) -> Result<EntryOutcome, Error> {
        if stat.st_nlink < 2 || self.fill.options.internal.plain.is_some() {
            return make(self, &mut || ());
        }
        let shared = self.shared;
        match shared.links.claim(stat, at.node, name) {
            Claim::First(mut first) => make(self, &mut || first.created()),
            Claim::LinkTo(directory, first) => match self.link(at, name, &directory, &first)? {
                Ok(()) => {
                    self.tally.entries.hard_links += 1;
                    Ok(EntryOutcome::Yes)
                }
                // The inode is full (ext4: 65,000 names), or the file system has no links: an entry of its own.
                Err(errno @ (Errno::MLINK | Errno::PERM | Errno::NOTSUP)) => {
                    self.fill
                        .notes
                        .not_kept(WarningCode::HardLinkNotKept, "hard link", errno, || at.node.path_of(name));
                    make(self, &mut || ())
                }
                Err(errno) => self.create_failed(at, name, Operation::CreateLink, errno),
            },
        }
    }

    fn link(
        &self,
        at: BorrowedPair<'_>,
        name: &CStr,
        directory: &Arc<Node>,
        first: &CStr,
    ) -> Result<crate::sys::Result<()>, Error> {
        if Arc::ptr_eq(directory, at.node) {
            return Ok(rustix::fs::linkat(at.dst, first, at.dst, name, AtFlags::empty()));
        }
        let other = directory
            .open(self.fill.dst_root, crate::sys::PATH_ONLY)
            .map_err(|errno| self.dst_error(Operation::OpenDirectory, &directory.path(), errno))?;
        Ok(rustix::fs::linkat(&other, first, at.dst, name, AtFlags::empty()))
    }

    /// Makes an independent file. `created` is called as soon as it exists.
    fn contents_and_metadata(
        &mut self,
        at: BorrowedPair<'_>,
        name: &CStr,
        src: BorrowedFd<'_>,
        stat: &Stat,
        created: &mut dyn FnMut(),
    ) -> Result<EntryOutcome, Error> {
        let path = || at.node.path_of(name);
        if let Files::Clonefile { .. } = self.fill.files {
            match sys::clone_file(src, at.dst, name) {
                Ok(()) => {
                    created();
                    return self.cloned(at, name, stat).map(|()| EntryOutcome::Yes);
                }
                Err(errno) if !sys::permits_copy(errno) => {
                    return self.create_failed(at, name, Operation::Clone, errno);
                }
                Err(errno) if self.fill.strict => return Err(not_shared(&path(), errno)),
                Err(errno) => self.fill.notes.fell_back(Strategy::Clonefile, Strategy::Copy, errno, path),
            }
        }
        self.keeper.load_xattrs(XattrTarget::Open(src)).map_err(|fault| self.fill.error(&path(), fault))?;
        let mode = self.keeper.creation_mode(stat);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dst = match crate::sys::open_at(at.dst, name, flags, mode) {
            Ok(dst) => dst,
            Err(errno) => return self.create_failed(at, name, Operation::Create, errno),
        };
        created();
        let moved = self.contents(at, name, src, dst.as_fd(), stat)?;
        let now = self.keeper.mode_after_umask(mode);
        self.keeper
            .keep(XattrTarget::Open(src), Target::Open(dst.as_fd()), stat, Some(now), &path)
            .map_err(|fault| self.fill.error(&path(), fault))?;
        // The standard libraries do not look again.
        if self.fill.options.internal.plain.is_none() {
            let after = rustix::fs::fstat(src).map_err(|errno| self.src_error(Operation::Stat, &path(), errno))?;
            if moved.short || !same_version(stat, &after) {
                self.fill.notes.changed(path());
            }
        }
        self.tally.entries.files += 1;
        self.tally.bytes.apparent += size(stat);
        self.tally.bytes.shared += moved.shared;
        self.tally.bytes.written += moved.written;
        self.tally.inlined_bytes += moved.inlined;
        Ok(EntryOutcome::Yes)
    }

    /// Counts a file that one call has cloned, and gives it back what that call takes away.
    fn cloned(&mut self, at: BorrowedPair<'_>, name: &CStr, stat: &Stat) -> Result<(), Error> {
        const SET_IDS: RawMode = 0o6000;
        if stat.st_mode & SET_IDS != 0 {
            sys::set_mode_of_name(at.dst, name, Mode::from_raw_mode(stat.st_mode & 0o7777))
                .map_err(|errno| self.dst_error(Operation::SetMode, &at.node.path_of(name), errno))?;
        }
        let user = rustix::process::geteuid();
        if !user.is_root() && user.as_raw() != stat.st_uid {
            let path = || at.node.path_of(name);
            self.fill.notes.not_kept(WarningCode::OwnerNotKept, "owner or group", Errno::PERM, path);
        }
        self.tally.entries.files += 1;
        self.tally.bytes.apparent += size(stat);
        self.tally.bytes.shared += stored(stat);
        Ok(())
    }

    fn contents(
        &mut self,
        at: BorrowedPair<'_>,
        name: &CStr,
        src: BorrowedFd<'_>,
        dst: BorrowedFd<'_>,
        stat: &Stat,
    ) -> Result<MovedBytes, Error> {
        let path = || at.node.path_of(name);
        let on_server = match self.fill.files {
            Files::Clone(Contents::Reflink { tell_inlined }) if size(stat) > 0 => {
                match self
                    .mover
                    .reflink(src, dst, stat, tell_inlined)
                    .map_err(|fault| self.fill.error(&path(), fault))?
                {
                    ReflinkOutcome::Done(moved) => return Ok(moved),
                    ReflinkOutcome::Refused(errno) if self.fill.strict => {
                        return Err(not_shared(&path(), errno));
                    }
                    ReflinkOutcome::Refused(errno) => {
                        self.fill.notes.fell_back(Strategy::Reflink, Strategy::Copy, errno, path);
                        false
                    }
                }
            }
            Files::Clone(Contents::CopyOnServer) => true,
            _ => false,
        };
        if self.fill.keeps_nocow {
            // Only possible while the file is empty. Fails where there is no such attribute.
            let _ = crate::sys::copy_nocow(src, dst);
        }
        self.mover.copy(src, dst, stat, on_server).map_err(|fault| self.fill.error(&path(), fault))
    }

    /// Makes a second name for the source's own inode: the `hardlink` strategy.
    fn link_to_source(
        &mut self,
        at: BorrowedPair<'_>,
        name: &CStr,
        src: BorrowedFd<'_>,
        stat: &Stat,
    ) -> Result<EntryOutcome, Error> {
        match rustix::fs::linkat(at.src, name, at.dst, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(errno @ Errno::MLINK) => {
                let path = || at.node.path_of(name);
                self.fill.notes.fell_back(Strategy::Hardlink, Strategy::Copy, errno, path);
                return self.contents_and_metadata(at, name, src, stat, &mut || ());
            }
            Err(Errno::NOENT) => return Ok(EntryOutcome::Gone),
            Err(errno) => return self.create_failed(at, name, Operation::CreateLink, errno),
        }
        if stat.st_nlink > 1 {
            match self.shared.links.claim(stat, at.node, name) {
                Claim::First(mut first) => first.created(),
                Claim::LinkTo(..) => {
                    self.tally.entries.hard_links += 1;
                    return Ok(EntryOutcome::Yes);
                }
            }
        }
        self.tally.entries.files += 1;
        self.tally.bytes.apparent += size(stat);
        self.tally.bytes.shared += stored(stat);
        Ok(EntryOutcome::Yes)
    }

    fn symlink(&mut self, at: BorrowedPair<'_>, name: &CStr) -> Result<EntryOutcome, Error> {
        let path = || at.node.path_of(name);
        if let Some(KeptLinks::Listed(links)) = self.fill.options.internal.plain.as_ref().map(|plain| &plain.links) {
            links.add(path());
            return Ok(EntryOutcome::Yes);
        }
        let stat = match rustix::fs::statat(at.src, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(EntryOutcome::Gone),
            Err(errno) => return Err(self.src_error(Operation::Stat, &path(), errno)),
        };
        self.check_frozen(&stat, path)?;
        let target = match rustix::fs::readlinkat(at.src, name, Vec::new()) {
            Ok(target) => target,
            Err(Errno::NOENT) => return Ok(EntryOutcome::Gone),
            Err(Errno::INVAL) => return Ok(EntryOutcome::OtherKind),
            Err(errno) => return Err(self.src_error(Operation::ReadLink, &path(), errno)),
        };
        let target = match self.fill.options.internal.plain.as_ref().map(|plain| &plain.links) {
            Some(KeptLinks::Absolute(base)) => absolute(base, &at.node.path(), target),
            _ => target,
        };
        self.once_per_inode(at, name, &stat, |worker, created| {
            worker.load_named_xattrs(at, name)?;
            if let Err(errno) = rustix::fs::symlinkat(&*target, at.dst, name) {
                return worker.create_failed(at, name, Operation::CreateSymlink, errno);
            }
            created();
            worker.named_metadata(at, name, &stat, None)?;
            worker.tally.entries.symlinks += 1;
            Ok(EntryOutcome::Yes)
        })
    }

    /// Makes FIFOs and, for the privileged, device nodes.
    fn special_file(&mut self, at: BorrowedPair<'_>, name: &CStr) -> Result<EntryOutcome, Error> {
        let path = || at.node.path_of(name);
        let stat = match rustix::fs::statat(at.src, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(EntryOutcome::Gone),
            Err(errno) => return Err(self.src_error(Operation::Stat, &path(), errno)),
        };
        self.check_frozen(&stat, path)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !matches!(kind, FileType::Fifo | FileType::CharacterDevice | FileType::BlockDevice) {
            return Ok(EntryOutcome::OtherKind);
        }
        self.once_per_inode(at, name, &stat, |worker, created| {
            worker.load_named_xattrs(at, name)?;
            let mode = Mode::RUSR | Mode::WUSR;
            match sys::make_node(at.dst, name, kind, mode, &stat) {
                Ok(()) => created(),
                Err(Errno::PERM) if kind != FileType::Fifo => {
                    worker.fill.notes.skipped(path(), SkipReason::Device);
                    return Ok(EntryOutcome::Yes);
                }
                Err(errno) => return worker.create_failed(at, name, Operation::CreateSpecialFile, errno),
            }
            let now = worker.keeper.mode_after_umask(mode);
            worker.named_metadata(at, name, &stat, Some(now))?;
            match kind {
                FileType::Fifo => worker.tally.entries.fifos += 1,
                _ => worker.tally.entries.devices += 1,
            }
            Ok(EntryOutcome::Yes)
        })
    }

    fn load_named_xattrs(&mut self, at: BorrowedPair<'_>, name: &CStr) -> Result<(), Error> {
        let loaded = self.keeper.load_xattrs(XattrTarget::Named(at.src, name));
        loaded.map(|_| ()).map_err(|fault| self.fill.error(&at.node.path_of(name), fault))
    }

    /// Keeps the metadata of an entry that is not opened. The copy is in a staged tree that other users cannot enter.
    fn named_metadata(
        &mut self,
        at: BorrowedPair<'_>,
        name: &CStr,
        stat: &Stat,
        mode: Option<RawMode>,
    ) -> Result<(), Error> {
        let path = || at.node.path_of(name);
        let (src, dst) = (XattrTarget::Named(at.src, name), Target::Named(at.dst, name));
        self.keeper.keep(src, dst, stat, mode, &path).map_err(|fault| self.fill.error(&path(), fault))
    }

    /// Returns the outcome of a failed creation. EEXIST: a directory that was being changed listed a name twice, and the first one stays.
    fn create_failed(
        &self,
        at: BorrowedPair<'_>,
        name: &CStr,
        operation: Operation,
        errno: Errno,
    ) -> Result<EntryOutcome, Error> {
        match errno {
            Errno::EXIST => Ok(EntryOutcome::Gone),
            _ => Err(self.dst_error(operation, &at.node.path_of(name), errno)),
        }
    }
}

/// Resolves the target of a link in `directory` of the tree at `base`, by names alone, as POSIX path functions of languages do.
fn absolute(base: &Path, directory: &Path, target: CString) -> CString {
    if target.to_bytes().starts_with(b"/") {
        return target;
    }
    let mut names: Vec<&[u8]> = Vec::new();
    let parts = [base.as_os_str().as_bytes(), directory.as_os_str().as_bytes(), target.to_bytes()];
    for name in parts.iter().flat_map(|part| part.split(|&byte| byte == b'/')) {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    let mut resolved = b"/".to_vec();
    resolved.extend(names.join(&b'/'));
    CString::new(resolved).unwrap_or(target)
}

/// Returns the error for a file that had to be shared.
fn not_shared(path: &Path, errno: Errno) -> Error {
    let shown = crate::error::ShownPath(path);
    let detail = format!("`{shown}` cannot share its extents: {}", std::io::Error::from(errno));
    let requirement = StatedRequirement::Property(Requirement::Cow);
    Error::RequirementRefused { requirement, refused: Vec::new(), detail: Some(detail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_targets_are_resolved_by_their_names_alone() {
        let resolved = |directory: &str, target: &str| {
            let target = CString::new(target).unwrap();
            absolute(Path::new("/src/tree"), Path::new(directory), target).into_string().unwrap()
        };
        assert_eq!(resolved("", "a"), "/src/tree/a");
        assert_eq!(resolved("d/e", "../f/./g//h/"), "/src/tree/d/f/g/h");
        assert_eq!(resolved("d", "../../.."), "/");
        assert_eq!(resolved("d", "../../../../x"), "/x");
        assert_eq!(resolved("d", "/etc/../etc/"), "/etc/../etc/");
    }
}
