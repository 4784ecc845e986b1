//! Making one entry of the clone: a file, a symlink, a FIFO, a device, or an empty directory to fill later.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

use super::contents::{ContentsMethod, MovedBytes, open_contents};
use super::hard_links::Claim;
use super::metadata::{Fault, same_version};
use super::request::Files;
use super::worker::{EntryPair, FillWorker, Later};
use crate::error::Error;
use crate::options::internal::KeptLinks;
use crate::sys::{self, XattrTarget, size, stored};
use crate::tree::file_set::{FileSet, is_sqlite};
use crate::tree::location::DIRECTORY;
use crate::tree::node::{Names, Node, open_source};
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::{SkipReason, WarningCode};
use crate::vocabulary::strategy::{Requirement, Strategy};

pub(super) enum Obstacle {
    /// It became something else after the directory was read.
    OtherKind,
    Gone,
    Fault(Fault),
    Error(Error),
}

impl From<Fault> for Obstacle {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Error> for Obstacle {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// EEXIST: a directory that was being changed listed a name twice, and the first entry stays.
fn create(operation: Operation) -> impl FnOnce(Errno) -> Obstacle {
    move |errno| match errno {
        Errno::EXIST => Obstacle::Gone,
        _ => Fault::dst(operation)(errno).into(),
    }
}

/// How often an entry may become something else before it is left out.
const PATIENCE: usize = 8;

/// Part of a subtree call's time that leaves the disk to others: without it shells did not start (worktrunk issue 640).
const PAUSE_SHARE: u32 = 10;

impl FillWorker<'_> {
    /// Makes an entry. Empty directories and files held back for their sets are added to `later`.
    pub(super) fn entry(&mut self, at: EntryPair<'_>, kind: FileType, later: &mut Later) -> Result<(), Error> {
        if self.is_calves_own(at) {
            return Ok(());
        }
        let mut kind = kind;
        for attempt in 0..PATIENCE {
            if kind == FileType::Unknown {
                kind = match sys::stat_at(at.src, at.name) {
                    Ok(stat) => sys::kind(stat),
                    Err(Errno::NOENT) => break,
                    Err(errno) => return Err(self.src_error(Operation::Stat, &at.path(), errno)),
                };
            }
            if attempt == 0 && self.excluded(at, kind == FileType::Directory) {
                return Ok(());
            }
            let made = match kind {
                _ if self.is_refused(kind) => {
                    let path = self.fill.shown(self.fill.src_path, &at.path());
                    return Err(Error::NotClonable { path, kind: "symlink, FIFO, socket or device" });
                }
                FileType::Directory => self.new_directory(at, &mut later.below),
                FileType::RegularFile => self.regular_file(at, &mut later.held_back),
                FileType::Symlink => self.symlink(at),
                FileType::Socket => {
                    self.fill.notes.skipped(at.path(), SkipReason::Socket);
                    Ok(())
                }
                _ => self.special_file(at),
            };
            match made {
                Ok(()) if attempt == 0 => return Ok(()),
                Ok(()) => {
                    self.fill.notes.changed(at.path());
                    return Ok(());
                }
                Err(Obstacle::OtherKind) => kind = FileType::Unknown,
                Err(Obstacle::Gone) => break,
                Err(Obstacle::Fault(fault)) => return Err(self.fill.error(&at.path(), fault)),
                Err(Obstacle::Error(error)) => return Err(error),
            }
        }
        self.vanished(at.path())
    }

    fn is_refused(&self, kind: FileType) -> bool {
        let Some(plain) = self.fill.options.internal.plain.as_ref() else { return false };
        match kind {
            FileType::Directory | FileType::RegularFile => false,
            FileType::Symlink => matches!(plain.links, KeptLinks::Refuse),
            _ => true,
        }
    }

    /// Clones a subtree in one call if the strategy does so, else makes an empty directory, to be filled by entry.
    fn new_directory(&self, at: EntryPair<'_>, below: &mut Names) -> Result<(), Obstacle> {
        if let Files::Clonefile { whole } = self.fill.files
            && let Some(entries) = whole.get(&at.path())
        {
            let src = open_source(at.src, at.name, DIRECTORY).map_err(|errno| match errno {
                Errno::NOENT => Obstacle::Gone,
                Errno::LOOP | Errno::NOTDIR => Obstacle::OtherKind,
                _ => Fault::src(Operation::OpenDirectory)(errno).into(),
            })?;
            let started = Instant::now();
            match sys::clone_directory(src.as_fd(), at.dst, at.name) {
                Ok(()) => {
                    std::thread::sleep(started.elapsed() / PAUSE_SHARE);
                    self.fill.options.progress.add(*entries, 0);
                    return Ok(());
                }
                // Its entries are cloned one by one, and each may be copied.
                Err(errno) if sys::permits_copy(errno) => {}
                // Something in it is unreadable: its entries tell what.
                Err(Errno::ACCESS) => {}
                Err(errno) => return Err(create(Operation::CloneDirectory)(errno)),
            }
        }
        rustix::fs::mkdirat(at.dst, at.name, Mode::RWXU).map_err(create(Operation::CreateDirectory))?;
        below.push_back((FileType::Directory, at.name.to_owned()));
        Ok(())
    }

    pub(super) fn regular_file(&mut self, at: EntryPair<'_>, held_back: &mut Names) -> Result<(), Obstacle> {
        if self.holds_back && FileSet::from_name(at.name.to_bytes()).is_some() {
            held_back.push_back((FileType::RegularFile, at.name.to_owned()));
            return Ok(());
        }
        let src = match open_contents(at.src, at.name, || self.pool.stopped()) {
            Ok(src) => src,
            Err(Errno::NOENT) => return Err(Obstacle::Gone),
            // A symlink, a socket, a device without a driver.
            Err(Errno::LOOP | Errno::NXIO | Errno::NODEV) => return Err(Obstacle::OtherKind),
            Err(errno) if self.may_skip(errno, || at.path()) => return Ok(()),
            Err(errno) => return Err(Fault::src(Operation::Open)(errno).into()),
        };
        let stat = rustix::fs::fstat(&src).map_err(Fault::src(Operation::Stat))?;
        if sys::kind(stat) != FileType::RegularFile {
            return Err(Obstacle::OtherKind);
        }
        if self.holds_back && is_sqlite(src.as_fd(), size(&stat)) {
            held_back.push_back((FileType::RegularFile, at.name.to_owned()));
            return Ok(());
        }
        self.check_frozen(&stat, || at.path())?;
        if let Files::Hardlink = self.fill.files {
            return self.link_to_source(at, src.as_fd(), &stat);
        }
        self.once_per_inode(at, &stat, |worker, created| worker.contents_and_metadata(at, src.as_fd(), &stat, created))
    }

    fn once_per_inode(
        &mut self,
        at: EntryPair<'_>,
        stat: &Stat,
        make: impl FnOnce(&mut Self, &mut dyn FnMut()) -> Result<(), Obstacle>,
    ) -> Result<(), Obstacle> {
        if stat.st_nlink < 2 || self.fill.options.internal.plain.is_some() {
            return make(self, &mut || ());
        }
        let shared = self.shared;
        match shared.links.claim(stat, at.node, at.name) {
            Claim::First(mut first) => make(self, &mut || first.created()),
            Claim::LinkTo(directory, first) => match self.link(at, &directory, &first)? {
                Ok(()) => {
                    self.tally.entries.hard_links += 1;
                    Ok(())
                }
                // The inode is full (ext4: 65,000 names), or the file system has no links: make a separate entry.
                Err(errno @ (Errno::MLINK | Errno::PERM | Errno::NOTSUP)) => {
                    self.fill.notes.not_kept(WarningCode::HardLinkNotKept, "hard link", errno, || at.path());
                    make(self, &mut || ())
                }
                Err(errno) => Err(create(Operation::CreateLink)(errno)),
            },
        }
    }

    fn link(&self, at: EntryPair<'_>, directory: &Arc<Node>, first: &CStr) -> Result<crate::sys::Result<()>, Error> {
        if Arc::ptr_eq(directory, at.node) {
            return Ok(rustix::fs::linkat(at.dst, first, at.dst, at.name, AtFlags::empty()));
        }
        let other = directory
            .open(self.fill.dst_root, crate::sys::PATH_ONLY)
            .map_err(|errno| self.dst_error(Operation::OpenDirectory, &directory.path(), errno))?;
        Ok(rustix::fs::linkat(&other, first, at.dst, at.name, AtFlags::empty()))
    }

    /// Makes an independent file. Calls `created` as soon as it exists.
    fn contents_and_metadata(
        &mut self,
        at: EntryPair<'_>,
        src: BorrowedFd<'_>,
        stat: &Stat,
        created: &mut dyn FnMut(),
    ) -> Result<(), Obstacle> {
        if let Files::Clonefile { .. } = self.fill.files {
            match sys::clone_file(src, at.dst, at.name) {
                Ok(()) => {
                    created();
                    return self.cloned(at, stat);
                }
                Err(errno) if !sys::permits_copy(errno) => return Err(create(Operation::Clone)(errno)),
                Err(errno) if self.fill.strict => return Err(not_shared(&at.path(), errno).into()),
                Err(errno) => self.fill.notes.fell_back(Strategy::Clonefile, errno, || at.path()),
            }
        }
        self.keeper.load_xattrs(XattrTarget::Open(src))?;
        let mode = self.keeper.creation_mode(stat);
        let dst = sys::create_at(at.dst, at.name, OFlags::WRONLY, mode).map_err(create(Operation::Create))?;
        created();
        let moved = self.contents(at, src, dst.as_fd(), stat)?;
        let now = self.keeper.mode_after_umask(mode);
        self.keeper.keep(XattrTarget::Open(src), XattrTarget::Open(dst.as_fd()), stat, Some(now), &|| at.path())?;
        // The standard libraries do not look again.
        let mut is_as_before = !moved.short && moved.written <= size(stat);
        if self.fill.options.internal.plain.is_none() {
            let after = rustix::fs::fstat(src).map_err(Fault::src(Operation::Stat))?;
            if moved.short || !same_version(stat, &after) {
                self.fill.notes.changed(at.path());
                is_as_before = false;
            }
        }
        let made = if is_as_before { Ok(*stat) } else { rustix::fs::fstat(&dst) };
        self.tally.entries.files += 1;
        self.tally.bytes.apparent += made.map_or(size(stat), |made| size(&made));
        self.tally.bytes.shared += moved.shared;
        self.tally.bytes.written += moved.written;
        self.tally.inlined_bytes += moved.inlined;
        Ok(())
    }

    /// Counts a file cloned by one call, and restores what that call takes away.
    fn cloned(&mut self, at: EntryPair<'_>, stat: &Stat) -> Result<(), Obstacle> {
        const SET_IDS: RawMode = 0o6000;
        if stat.st_mode & SET_IDS != 0 {
            sys::set_mode_of_name(at.dst, at.name, Mode::from_raw_mode(stat.st_mode & 0o7777))
                .map_err(Fault::dst(Operation::SetMode))?;
        }
        let user = rustix::process::geteuid();
        if !user.is_root() && user.as_raw() != stat.st_uid {
            self.fill.notes.not_kept(WarningCode::OwnerNotKept, "owner or group", Errno::PERM, || at.path());
        }
        self.tally.entries.files += 1;
        self.tally.bytes.apparent += size(stat);
        self.tally.bytes.shared += stored(stat);
        Ok(())
    }

    fn contents(
        &mut self,
        at: EntryPair<'_>,
        src: BorrowedFd<'_>,
        dst: BorrowedFd<'_>,
        stat: &Stat,
    ) -> Result<MovedBytes, Obstacle> {
        let on_server = match self.fill.files {
            Files::Clone(ContentsMethod::Reflink { tell_inlined }) if size(stat) > 0 => {
                match self.mover.reflink(src, dst, stat, tell_inlined)? {
                    Ok(moved) => return Ok(moved),
                    Err(errno) if self.fill.strict => return Err(not_shared(&at.path(), errno).into()),
                    Err(errno) => {
                        self.fill.notes.fell_back(Strategy::Reflink, errno, || at.path());
                        false
                    }
                }
            }
            Files::Clone(ContentsMethod::CopyOnServer) => true,
            _ => false,
        };
        if self.fill.keeps_nocow {
            // Only possible while the file is empty. Fails where there is no such attribute.
            let _ = crate::sys::copy_nocow(src, dst);
        }
        Ok(self.mover.copy(src, dst, stat, on_server)?)
    }

    fn link_to_source(&mut self, at: EntryPair<'_>, src: BorrowedFd<'_>, stat: &Stat) -> Result<(), Obstacle> {
        match rustix::fs::linkat(at.src, at.name, at.dst, at.name, AtFlags::empty()) {
            Ok(()) => {}
            Err(errno @ Errno::MLINK) => {
                self.fill.notes.fell_back(Strategy::Hardlink, errno, || at.path());
                return self.contents_and_metadata(at, src, stat, &mut || ());
            }
            Err(Errno::NOENT) => return Err(Obstacle::Gone),
            Err(errno) => return Err(create(Operation::CreateLink)(errno)),
        }
        if stat.st_nlink > 1 {
            match self.shared.links.claim(stat, at.node, at.name) {
                Claim::First(mut first) => first.created(),
                Claim::LinkTo(..) => {
                    self.tally.entries.hard_links += 1;
                    return Ok(());
                }
            }
        }
        self.tally.entries.files += 1;
        self.tally.bytes.apparent += size(stat);
        self.tally.bytes.shared += stored(stat);
        Ok(())
    }

    fn symlink(&mut self, at: EntryPair<'_>) -> Result<(), Obstacle> {
        if let Some(KeptLinks::Listed(links)) = self.fill.options.internal.plain.as_ref().map(|plain| &plain.links) {
            links.add(at.path());
            return Ok(());
        }
        let stat = self.stat(at)?;
        if sys::kind(stat) != FileType::Symlink {
            return Err(Obstacle::OtherKind);
        }
        let target = match rustix::fs::readlinkat(at.src, at.name, Vec::new()) {
            Ok(target) => target,
            Err(Errno::NOENT) => return Err(Obstacle::Gone),
            Err(Errno::INVAL) => return Err(Obstacle::OtherKind),
            Err(errno) => return Err(Fault::src(Operation::ReadLink)(errno).into()),
        };
        let target = match self.fill.options.internal.plain.as_ref().map(|plain| &plain.links) {
            Some(KeptLinks::Absolute(base)) => absolute(base, &at.node.path(), target),
            _ => target,
        };
        self.once_per_inode(at, &stat, |worker, created| {
            worker.keeper.load_xattrs(XattrTarget::Named(at.src, at.name))?;
            rustix::fs::symlinkat(&*target, at.dst, at.name).map_err(create(Operation::CreateSymlink))?;
            created();
            worker.named_metadata(at, &stat, None)?;
            worker.tally.entries.symlinks += 1;
            Ok(())
        })
    }

    fn special_file(&mut self, at: EntryPair<'_>) -> Result<(), Obstacle> {
        let stat = self.stat(at)?;
        let kind = sys::kind(stat);
        if !matches!(kind, FileType::Fifo | FileType::CharacterDevice | FileType::BlockDevice) {
            return Err(Obstacle::OtherKind);
        }
        self.once_per_inode(at, &stat, |worker, created| {
            worker.keeper.load_xattrs(XattrTarget::Named(at.src, at.name))?;
            let mode = Mode::RUSR | Mode::WUSR;
            match sys::make_node(at.dst, at.name, kind, mode, &stat) {
                Ok(()) => created(),
                Err(Errno::PERM) if kind != FileType::Fifo => {
                    worker.fill.notes.skipped(at.path(), SkipReason::Device);
                    return Ok(());
                }
                Err(errno) => return Err(create(Operation::CreateSpecialFile)(errno)),
            }
            let now = worker.keeper.mode_after_umask(mode);
            worker.named_metadata(at, &stat, Some(now))?;
            match kind {
                FileType::Fifo => worker.tally.entries.fifos += 1,
                _ => worker.tally.entries.devices += 1,
            }
            Ok(())
        })
    }

    fn stat(&self, at: EntryPair<'_>) -> Result<Stat, Obstacle> {
        let stat = sys::find_at(at.src, at.name).map_err(Fault::src(Operation::Stat))?.ok_or(Obstacle::Gone)?;
        self.check_frozen(&stat, || at.path())?;
        Ok(stat)
    }

    /// Keeps the metadata of an unopened entry. The copy is in a staged tree that other users cannot enter.
    fn named_metadata(&mut self, at: EntryPair<'_>, stat: &Stat, mode: Option<RawMode>) -> Result<(), Fault> {
        let (src, dst) = (XattrTarget::Named(at.src, at.name), XattrTarget::Named(at.dst, at.name));
        self.keeper.keep(src, dst, stat, mode, &|| at.path())
    }
}

/// Resolves a link's target in `directory` below `base` by names alone, as the POSIX path functions of languages do.
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
    CString::new([&b"/"[..], &names.join(&b'/')].concat()).unwrap_or(target)
}

fn not_shared(path: &Path, errno: Errno) -> Error {
    let shown = crate::error::ShownPath(path);
    let detail = format!("`{shown}` cannot share its extents: {}", std::io::Error::from(errno));
    Error::unmet(Requirement::Cow, detail)
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
