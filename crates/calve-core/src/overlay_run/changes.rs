//! The changes of a command in its private copy: the overlay's upper directory, compared with the tree below it.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

use super::closed::ClosedEntries;
use super::xattrs::{RootState, xattrs};
use crate::error::Error;
use crate::json::{As, ReceiptPath};
use crate::sys::{self, XattrTarget};
use crate::tree::compare::same_data;
use crate::tree::fill::contents::open_contents;
use crate::tree::held_times::modified;
use crate::tree::node::{Node, full_path, open_above};
use crate::tree::stable::Since;
use crate::tree::walk::EntryKind;
use crate::vocabulary::hidden_name::is_passing;
use crate::vocabulary::operation::Operation;

/// One entry that differs from the tree in kind, mode, owner or contents.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename = "ChangeReceipt")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The path below the tree; `.` for the tree itself.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// The entry before. Null if it is new.
    pub before: Option<EntryKind>,
    /// The entry now. Null if it is deleted.
    pub after: Option<EntryKind>,
    /// More than times differs.
    #[serde(skip)]
    pub(super) is_different: bool,
}

/// A regular file or a symlink in one of the two trees.
pub struct Version {
    /// True if its owner may run it.
    pub is_executable: bool,
    /// The bytes, or the symlink's target. `None` if they exceed the caller's limit.
    pub contents: Option<Vec<u8>>,
}

pub(super) fn version(root: BorrowedFd<'_>, path: &Path, most: u64) -> sys::Result<Version> {
    let (directory, name) = open_above(root, path, sys::PATH_ONLY)?;
    let stat = sys::stat_at(&directory, &*name)?;
    let is_executable = stat.st_mode & 0o100 != 0;
    if sys::kind(stat) == FileType::Symlink {
        let target = rustix::fs::readlinkat(&directory, &*name, Vec::new())?;
        return Ok(Version { is_executable, contents: Some(target.into_bytes()) });
    }
    let file = open_contents(directory.as_fd(), &name, || false)?;
    let contents = sys::read(file, most + 1)?;
    Ok(Version { is_executable, contents: (contents.len() as u64 <= most).then_some(contents) })
}

/// An overlay's upper directory, and its state before the command began.
#[derive(Clone, Copy)]
pub(super) struct Layer<'a> {
    pub(super) directory: BorrowedFd<'a>,
    pub(super) began: &'a RootState,
    pub(super) closed: &'a ClosedEntries,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum ListingScope {
    /// Entries that differ in kind, mode, owner, contents, attributes or times.
    Touched,
    All,
}

pub(super) fn changes(
    upper: &Layer<'_>,
    lower: BorrowedFd<'_>,
    path: &Path,
    listed: ListingScope,
) -> Result<Vec<Change>, Error> {
    let Layer { directory: upper, began, closed } = *upper;
    let mut reading = ChangeReader {
        upper,
        closed,
        lower,
        listed,
        opaque: sys::opaque_attribute(),
        found: Vec::new(),
        next: Vec::new(),
    };
    reading.next.push((Node::root(), [true, true], false));
    let failed = |path: PathBuf| move |errno| Error::io(Operation::Compare, path, errno);
    let roots = (rustix::fs::fstat(lower), rustix::fs::fstat(upper));
    let (before, after) = (roots.0.map_err(failed(path.into()))?, roots.1.map_err(failed(path.into()))?);
    let is_changed = RootState::read(upper, closed).map_err(failed(path.into()))?.differs(began);
    if is_changed || listed == ListingScope::All || began.has_other_time(&after) {
        reading.add(PathBuf::new(), Some(&before), Some(&after), is_changed);
    }
    while let Some((node, layers, is_hidden)) = reading.next.pop() {
        reading.directory(&node, layers, is_hidden).map_err(failed(full_path(path, &node.path())))?;
    }
    reading.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(reading.found)
}

/// Returns whether nothing below `directory` has changed since: a change sets the ctime of the entry or its directory.
pub(super) fn is_quiet(directory: BorrowedFd<'_>, since: Since) -> sys::Result<bool> {
    if since.may_have_changed(&rustix::fs::fstat(directory)?) {
        return Ok(false);
    }
    let mut next = vec![Node::root()];
    while let Some(node) = next.pop() {
        let opened = node.open(directory, OFlags::RDONLY)?;
        for (name, _) in sys::list(opened.as_fd())? {
            let stat = sys::stat_at(&opened, &name)?;
            if since.may_have_changed(&stat) {
                return Ok(false);
            }
            if sys::is_directory(stat) {
                next.push(Node::child(&node, &name));
            }
        }
    }
    Ok(true)
}

struct ChangeReader<'a> {
    upper: BorrowedFd<'a>,
    closed: &'a ClosedEntries,
    lower: BorrowedFd<'a>,
    listed: ListingScope,
    /// The attribute of a directory that hides the lower one.
    opaque: &'static CStr,
    found: Vec<Change>,
    /// Directories; their presence in the lower and the upper layer; and whether the lower one is hidden, because the
    /// directory or one above it was made again. The kernel marks only the topmost of these.
    next: Vec<(Arc<Node>, [bool; 2], bool)>,
}

impl ChangeReader<'_> {
    fn directory(&mut self, node: &Arc<Node>, layers: [bool; 2], is_above_hidden: bool) -> sys::Result<()> {
        let [in_lower, in_upper] = layers;
        let upper = in_upper.then(|| sys::unless_gone(node.open(self.upper, OFlags::RDONLY)));
        let upper = upper.transpose()?.flatten();
        let lower = in_lower.then(|| node.open_source(self.lower)).transpose()?;
        let is_opaque = upper.as_ref().map_or(Ok(true), |upper| sys::is_opaque(upper.as_fd(), self.opaque))?;
        let is_hidden = is_opaque || is_above_hidden;
        let mut names = BTreeSet::new();
        for directory in upper.iter().chain(lower.iter().filter(|_| is_hidden)) {
            names.extend(sys::list(directory.as_fd())?.into_iter().map(|(name, _)| name));
        }
        let [upper, lower] = [&upper, &lower].map(|directory| directory.as_ref().map(AsFd::as_fd));
        names.iter().try_for_each(|name| self.entry(node, name, upper, lower, is_hidden))
    }

    fn entry(
        &mut self,
        node: &Arc<Node>,
        name: &CStr,
        upper: Option<BorrowedFd<'_>>,
        lower: Option<BorrowedFd<'_>>,
        is_hidden: bool,
    ) -> sys::Result<()> {
        // Trash of a `calve` that the command ran is not its work. Templates and spares are, and cannot be applied.
        if is_passing(name.to_bytes()) {
            return Ok(());
        }
        let (after, before) = (there(upper, name)?, there(lower, name)?);
        let after = after.map(|stat| self.closed.as_left(|| node.path_of(name), stat));
        if let (Some(upper), Some(lower), Some(before), Some(after)) = (upper, lower, &before, &after) {
            // A second name that the command made has to become a name of the same file.
            let has_names = || !sys::is_directory(after) && after.st_nlink > 1;
            let is_touched = || modified(before) != modified(after) || has_names();
            let is_different = self.listed == ListingScope::All
                || (before.st_mode, before.st_uid, before.st_gid) != (after.st_mode, after.st_uid, after.st_gid)
                || !has_same_xattrs(lower, upper, name)?
                || !has_same_data(lower, upper, name, before, after)?;
            if is_different || is_touched() {
                self.add(node.path_of(name), Some(before), Some(after), is_different);
            }
        } else {
            self.add(node.path_of(name), before.as_ref(), after.as_ref(), true);
        }
        let layers = [&before, &after].map(|stat| stat.as_ref().is_some_and(sys::is_directory));
        if layers.contains(&true) {
            self.next.push((Node::child(node, name), layers, is_hidden));
        }
        Ok(())
    }

    fn add(&mut self, path: PathBuf, before: Option<&Stat>, after: Option<&Stat>, is_different: bool) {
        let [before, after] = [before, after].map(|stat| stat.map(|stat| EntryKind::from(sys::kind(stat))));
        // A file that came and went leaves a whiteout of nothing.
        if before.is_some() || after.is_some() {
            self.found.push(Change { path, before, after, is_different });
        }
    }
}

/// A character device 0/0 is a deleted entry (overlayfs.rst, "whiteouts"). A socket counts as nothing.
fn there(layer: Option<BorrowedFd<'_>>, name: &CStr) -> sys::Result<Option<Stat>> {
    let Some(layer) = layer else { return Ok(None) };
    let is_nothing = |stat: &Stat| match sys::kind(stat) {
        FileType::CharacterDevice => stat.st_rdev == 0,
        kind => kind == FileType::Socket,
    };
    Ok(sys::find_at(layer, name)?.filter(|stat| !is_nothing(stat)))
}

fn has_same_xattrs(lower: BorrowedFd<'_>, upper: BorrowedFd<'_>, name: &CStr) -> sys::Result<bool> {
    let [lower, upper] = [lower, upper].map(|layer| sys::unless_gone(xattrs(XattrTarget::Named(layer, name))));
    // An entry that is gone by now is listed as changed.
    Ok(lower?.zip(upper?).is_some_and(|(lower, upper)| lower == upper))
}

fn has_same_data(
    lower: BorrowedFd<'_>,
    upper: BorrowedFd<'_>,
    name: &CStr,
    before: &Stat,
    after: &Stat,
) -> sys::Result<bool> {
    if sys::kind(before) == FileType::RegularFile && before.st_size != after.st_size {
        return Ok(false);
    }
    match sys::unless_gone(same_data(lower, upper, name, (before, after), || false)) {
        // Undecidable: listed rather than left out.
        Ok(None) | Err(Errno::ACCESS | Errno::PERM) => Ok(false),
        compared => compared.map(Option::unwrap_or_default),
    }
}
