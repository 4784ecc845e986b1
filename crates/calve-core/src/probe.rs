//! What two places can really do, found by doing it between them. The source is only ever read.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, RawMode};
use rustix::io::Errno;

use crate::CloneOptions;
use crate::clone::sample;
use crate::clone::staging::Staging;
use crate::error::{Error, Shown};
use crate::remove::delete::split;
use crate::report::{Offer, PlaceReport, ProbeReport};
use crate::source::Source;
use crate::strategy::{IN_ORDER, Reason, Wish, open_below};
use crate::sys;
use crate::tree::fill::metadata::Created;
use crate::tree::place::{Place, identity};

/// What was found out: all that the choice of a strategy may depend on.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) snapshot: Result<(), Reason>,
    pub(crate) nested_subvolumes: usize,
    pub(crate) clonefile: Result<(), Reason>,
    pub(crate) reflink: Result<(), Reason>,
    pub(crate) hardlink: Result<(), Reason>,
    /// The destination keeps small contents inside its metadata, where they cannot be shared.
    pub(crate) may_inline: bool,
    /// The destination's server copies by itself.
    pub(crate) copies_on_server: bool,
}

impl Facts {
    /// Before anything is known.
    pub(crate) fn nothing() -> Self {
        let untried = || Err(Reason::new("not tried"));
        Self {
            snapshot: untried(),
            nested_subvolumes: 0,
            clonefile: untried(),
            reflink: untried(),
            hardlink: untried(),
            may_inline: false,
            copies_on_server: false,
        }
    }

    /// What the two places say of themselves, without making anything.
    pub(crate) fn from_places(source: &Source, dst_parent: BorrowedFd<'_>) -> Self {
        let mut facts = Self::nothing();
        match snapshot(source, dst_parent) {
            Ok(nested) => {
                facts.snapshot = Ok(());
                facts.nested_subvolumes = nested;
            }
            Err(reason) => facts.snapshot = Err(reason),
        }
        facts.clonefile = match sys::CLONE_DIRECTORY_REFUSED {
            Some(why) => Err(Reason::new(why)),
            None if source.single().is_some() => Err(Reason::new("the source is not a directory")),
            None => Ok(()),
        };
        let device = rustix::fs::fstat(dst_parent).map(|stat| stat.st_dev);
        facts.hardlink = match device {
            Ok(device) if device == source.stat().st_dev => Ok(()),
            _ => Err(Reason::new("source and destination are on different file systems")),
        };
        let magic = sys::magic(dst_parent).unwrap_or(0);
        facts.may_inline = magic == sys::BTRFS_MAGIC;
        facts.copies_on_server = sys::copies_on_the_server(magic);
        facts
    }

    /// What only trying can tell, tried in the empty staged directory.
    pub(crate) fn try_in(&mut self, source: &Source, staging: &Staging<'_>) -> Result<Created, Error> {
        let failed = |errno| Error::io("create a file in", staging.parent_path(), errno);
        let Some(root) = staging.root() else { return Err(failed(Errno::NOENT)) };
        with_new_file(root, |file| self.reflink = sample::try_reflink(source, root, file)).map_err(failed)
    }
}

/// What a new file in the staged directory has.
pub(crate) fn created_in(staging: &Staging<'_>) -> Result<Created, Error> {
    let failed = |errno| Error::io("create a file in", staging.parent_path(), errno);
    with_new_file(staging.root().ok_or_else(|| failed(Errno::NOENT))?, |_| {}).map_err(failed)
}

/// Makes a file, hands it over, and removes it. Says what it had.
fn with_new_file(root: BorrowedFd<'_>, then: impl FnOnce(BorrowedFd<'_>)) -> sys::Result<Created> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = crate::sys::open_at(root, PROBE_NAME, flags, Mode::from_raw_mode(0o777))?;
    let stat = rustix::fs::fstat(&file)?;
    then(file.as_fd());
    rustix::fs::unlinkat(root, PROBE_NAME, AtFlags::empty())?;
    Ok(Created { uid: stat.st_uid, gid: stat.st_gid, mask: stat.st_mode & 0o777 })
}

const PROBE_NAME: &std::ffi::CStr = c".calve-probe";

/// The number of nested subvolumes, or why a snapshot is out of the question. Whether the call is permitted, only the call tells.
fn snapshot(source: &Source, dst_parent: BorrowedFd<'_>) -> Result<usize, Reason> {
    let src = source.directory();
    if source.single().is_some() {
        return Err(Reason::new("the source is not a directory"));
    }
    if sys::magic(src) != Ok(sys::BTRFS_MAGIC) {
        return Err(Reason::new(format!("{} has no snapshots", sys::file_system_name(src)))
            .with_remedy("keep the source in a btrfs subvolume"));
    }
    if !sys::is_subvolume(src, source.stat()).unwrap_or(false) {
        return Err(Reason::new("the source is not a btrfs subvolume")
            .with_remedy("create a btrfs subvolume, and clone the source into it"));
    }
    if !sys::same_btrfs(src, dst_parent) {
        return Err(Reason::new("source and destination are on different file systems")
            .with_remedy("clone to a place on the source's file system"));
    }
    let mounts = sys::mounts_below(src)
        .map_err(|errno| Reason::new(format!("cannot tell what is mounted below the source: {errno}")))?;
    if let Some(first) = mounts.first() {
        return Err(Reason::new(format!("`{}` is mounted below the source", Shown(first))).with_remedy("unmount it"));
    }
    let nested = sys::nested_subvolumes(src).map_err(cannot_list)?;
    let user = rustix::process::geteuid();
    if !user.is_root() {
        only_own(src, &nested, user.as_raw())?;
    }
    Ok(nested.len())
}

fn cannot_list(errno: Errno) -> Reason {
    Reason::new(format!("cannot list the subvolumes nested in it: {}", std::io::Error::from(errno)))
}

/// Only root and the owner of a subvolume may snapshot it, and each nested one takes a snapshot of its own, made in the copy of the
/// directory that it is in.
fn only_own(root: BorrowedFd<'_>, nested: &[CString], user: u32) -> Result<(), Reason> {
    const OWNER_MAY_CHANGE: RawMode = 0o300;
    for path in nested {
        let (above, name) = split(path);
        let parent = open_below(root, above.iter()).map_err(cannot_list)?;
        let stat = rustix::fs::fstat(&parent).map_err(cannot_list)?;
        // The root itself is its owner's to change until it is published.
        if !above.is_empty() && (stat.st_uid != user || stat.st_mode & OWNER_MAY_CHANGE != OWNER_MAY_CHANGE) {
            let path = PathBuf::from(OsStr::from_bytes(path.to_bytes()));
            let why = format!("the nested subvolume `{}` is in a directory that you may not change", Shown(path));
            return Err(Reason::new(why));
        }
        let below = open_below(parent.as_fd(), std::iter::once(&name)).map_err(cannot_list)?;
        if rustix::fs::fstat(&below).map_err(cannot_list)?.st_uid != user {
            let path = PathBuf::from(OsStr::from_bytes(path.to_bytes()));
            let why = format!("only the owner of the nested subvolume `{}` (or root) may snapshot it", Shown(path));
            return Err(Reason::new(why).with_remedy("run as its owner"));
        }
        only_own(below.as_fd(), &sys::nested_subvolumes(below.as_fd()).map_err(cannot_list)?, user)?;
    }
    Ok(())
}

/// Finds out what cloning `src` to `dst` could use. Where `dst` is a directory, into it; otherwise beside it.
///
/// Makes one hidden file in a hidden directory there, and removes both: also where `src` and `dst` are the same directory, whose
/// modification time that changes. Where nothing can be made for want of permission, or because the file system is mounted
/// read-only, every strategy is refused for that reason if it has none of its own.
pub fn probe(src: &Path, dst: &Path) -> Result<ProbeReport, Error> {
    let source = Source::open(src)?;
    let (place, is_directory) = place_of(dst)?;
    let mut facts = Facts::from_places(&source, place.parent());
    let unwritable = match try_at(&place, &source, &mut facts) {
        Ok(()) => None,
        Err(error) if [Errno::ACCESS, Errno::PERM, Errno::ROFS].iter().any(|errno| error.is_errno(*errno)) => {
            let path = if is_directory { dst } else { place.parent_path() };
            let errno = std::io::Error::from_raw_os_error(error.errno().unwrap_or_default());
            Some(Reason::new(format!("cannot write to `{}`: {errno}", Shown(path))))
        }
        Err(error) => return Err(error),
    };
    let wish = Wish::of(&CloneOptions::default());
    let chosen = match unwritable {
        None => Some(crate::strategy::choose(&facts, &wish, &[])?.0.strategy()),
        Some(_) => None,
    };
    if let Some(reason) = &unwritable {
        // It was not tried.
        facts.reflink = Err(reason.clone());
    }
    let offers = IN_ORDER.map(|method| {
        let own = method.accepts(&facts, &wish).err();
        let refused = own.or_else(|| unwritable.clone()).map(|reason| reason.by(method.strategy()));
        Offer { strategy: method.strategy(), refused }
    });
    Ok(ProbeReport {
        src: place_report(src, source.directory(), source.identity().0),
        dst: place_report(dst, place.parent(), device_of(place.parent())),
        offers: offers.into(),
        chosen,
    })
}

/// The place that is meant by `dst`: in it where it is a directory, otherwise beside it. Says which.
fn place_of(dst: &Path) -> Result<(Place, bool), Error> {
    let inside = dst.join(".calve-probe");
    let is_directory = rustix::fs::statat(rustix::fs::CWD, dst, AtFlags::empty())
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory);
    let target = if is_directory { inside.as_path() } else { dst };
    let place = Place::open(target)?.ok_or_else(|| Error::io("open", dst, Errno::INVAL))?;
    Ok((place, is_directory))
}

fn try_at(place: &Place, source: &Source, facts: &mut Facts) -> Result<(), Error> {
    let mut staging = Staging::reserve(place)?;
    staging.make_directory()?;
    facts.try_in(source, &staging).map(|_| ())
}

fn device_of(directory: BorrowedFd<'_>) -> u64 {
    rustix::fs::fstat(directory).map_or(0, |stat| identity(&stat).0)
}

fn place_report(path: &Path, directory: BorrowedFd<'_>, device: u64) -> PlaceReport {
    PlaceReport {
        path: path.to_path_buf(),
        file_system: sys::file_system_name(directory),
        device: (rustix::fs::major(device as _), rustix::fs::minor(device as _)),
    }
}
