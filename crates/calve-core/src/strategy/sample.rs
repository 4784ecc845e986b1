//! Trying a reflink with a few blocks of a file of the source.

use std::ffi::CStr;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::strategy::criteria::RefusalReason;
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::node::{Node, open_source};
use crate::tree::source::Source;
use crate::vocabulary::remedy::Remedy;

/// Directories searched for a file to try.
const MOST_DIRECTORIES: usize = 256;
/// Files opened to see whether they have contents.
const MOST_OPENED: usize = 512;
/// Files tried before accepting a refusal that may concern one file only.
const MOST_FILES: usize = 8;

/// Returns whether files of the source can share extents with `target`, an empty file in the staged directory `root`.
pub(crate) fn try_reflink(source: &Source, root: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), RefusalReason> {
    let mut refused = None;
    let mut files = 0;
    each_file(source, &mut |file| {
        files += 1;
        refused = reflink_part(file, target).err();
        match refused {
            // One file's own trouble: no-copy-on-write, a swap file, contents inside the inode.
            Some(Errno::INVAL | Errno::TXTBSY) if files < MOST_FILES => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    });
    match refused {
        Some(errno) => Err(reason(errno, root)),
        None if files > 0 => Ok(()),
        None => try_own_files(source, root, target),
    }
}

/// Tries with files of its own, for a source without any. On one device, the destination's own ability decides.
fn try_own_files(source: &Source, root: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), RefusalReason> {
    let here = rustix::fs::fstat(root).map(|stat| stat.st_dev);
    if here != Ok(source.stat().st_dev) && !sys::same_btrfs(source.directory(), root) {
        return Err(RefusalReason::new(
            "the source has no file with contents to try it with, and is on another device",
        ));
    }
    const NAME: &CStr = c".calve-probe-2";
    let tried = crate::sys::create_at(root, NAME, OFlags::RDWR, Mode::RUSR | Mode::WUSR).and_then(|file| {
        rustix::io::write(&file, &[1; 4096])?;
        let tried = reflink_part(file.as_fd(), target);
        rustix::fs::unlinkat(root, NAME, AtFlags::empty())?;
        tried
    });
    tried.map_err(|errno| reason(errno, root))
}

/// Reflinks a small file, or the first blocks of a large one: sharing takes time in proportion to the extents.
fn reflink_part(src: BorrowedFd<'_>, target: BorrowedFd<'_>) -> sys::Result<()> {
    const PART_BYTES: u64 = 64 * 1024;
    let stat = rustix::fs::fstat(src)?;
    sys::retry(|| match crate::sys::size(&stat) > PART_BYTES {
        true => sys::reflink_range(src, target, 0, PART_BYTES),
        false => sys::reflink(src, target),
    })
}

fn reason(errno: Errno, root: BorrowedFd<'_>) -> RefusalReason {
    let name = sys::file_system_name(root);
    match errno {
        Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS if sys::HAS_CLONEFILE => {
            RefusalReason::new("this system shares no extents file by file: what can be shared, `clonefile` shares")
        }
        Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS => {
            RefusalReason::new(format!("{name} cannot share extents between files"))
                .with_remedy(Remedy::ShareOneFileSystem)
        }
        Errno::XDEV => RefusalReason::new("source and destination are on different file systems")
            .with_remedy(Remedy::StayOnFileSystem),
        Errno::INVAL => RefusalReason::new(format!("{name} refused to share the extents of the files that were tried")),
        Errno::TXTBSY => RefusalReason::new("the files that were tried are in use as swap"),
        errno => RefusalReason::new(format!("sharing extents failed: {}", std::io::Error::from(errno))),
    }
}

/// Calls `look` with openable regular files of the source that have contents, until it breaks.
fn each_file(source: &Source, look: &mut dyn FnMut(BorrowedFd<'_>) -> ControlFlow<()>) {
    if let Some((name, kind)) = source.single() {
        if kind == FileType::RegularFile
            && let Some(file) = open_file(source.directory(), name)
        {
            let _ = look(file.as_fd());
        }
        return;
    }
    let mut directories = std::collections::VecDeque::from([Node::root()]);
    let mut buffer = ListingBuffer::new();
    let mut opened = 0;
    for _ in 0..MOST_DIRECTORIES {
        let Some(node) = directories.pop_front() else { return };
        let Ok(directory) = node.open_source(source.directory()) else { continue };
        let Ok(mut listing) = Listing::new(directory.as_fd(), &mut buffer) else { continue };
        while let Some(Ok(entry)) = listing.next() {
            match sys::kind_of(directory.as_fd(), entry.name, entry.kind) {
                Ok(FileType::Directory) if directories.len() < MOST_DIRECTORIES => {
                    directories.push_back(Node::child(&node, entry.name));
                }
                Ok(FileType::RegularFile) => {
                    opened += 1;
                    let file = open_file(directory.as_fd(), entry.name);
                    if opened > MOST_OPENED || file.is_some_and(|file| look(file.as_fd()).is_break()) {
                        return;
                    }
                }
                _ => {}
            }
        }
    }
}

fn open_file(directory: BorrowedFd<'_>, name: &CStr) -> Option<OwnedFd> {
    let file = open_source(directory, name, sys::FILE).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let usable = sys::kind(stat) == FileType::RegularFile && stat.st_size > 0;
    usable.then_some(file)
}
