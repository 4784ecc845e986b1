//! The real abilities of two places, found by trying. The source is only ever read.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::io::Errno;

use crate::error::{Error, ShownPath};
use crate::options::CloneOptions;
use crate::report::{FileSystemReport, Offer, ProbeReport};
use crate::staging::{RootKind, Staging};
use crate::strategy::IN_ORDER;
use crate::strategy::criteria::{Criteria, RefusalReason};
use crate::strategy::facts::Facts;
use crate::strategy::select::choose;
use crate::sys;
use crate::tree::location::{Location, identity};
use crate::tree::source::Source;
use crate::vocabulary::operation::Operation;

/// Finds the strategies for cloning `src` to `dst`: into `dst` if it is a directory, otherwise beside it.
///
/// Makes one hidden file in a hidden directory there, and removes both, which changes the modification time even of
/// `src` if it is the same directory. If nothing can be made there, for want of permission or on a read-only mount,
/// every strategy without a refusal of its own is refused for that reason.
pub fn probe(src: &Path, dst: &Path) -> Result<ProbeReport, Error> {
    let source = Source::open(src)?;
    let (location, is_directory) = location_of(dst)?;
    let mut facts = Facts::between(&source, location.parent());
    let unwritable = match try_at(&location, &source, &mut facts) {
        Ok(()) => None,
        Err(error) if [Errno::ACCESS, Errno::PERM, Errno::ROFS].iter().any(|errno| error.is_errno(*errno)) => {
            let path = if is_directory { dst } else { location.parent_path() };
            let errno = std::io::Error::from_raw_os_error(error.errno().unwrap_or_default());
            Some(RefusalReason::new(format!("cannot write to `{}`: {errno}", ShownPath(path))))
        }
        Err(error) => return Err(error),
    };
    let options = CloneOptions::default();
    let criteria = Criteria::new(&options);
    let mut chosen = None;
    match &unwritable {
        None => chosen = Some(choose(&facts, &criteria, &[])?.0.strategy),
        // It was not tried.
        Some(reason) => facts.reflink = Err(reason.clone()),
    }
    let offers = IN_ORDER.iter().map(|method| {
        let own = (method.accepts)(&facts, &criteria).err();
        let refused = own.or_else(|| unwritable.clone()).map(|reason| reason.by(method.strategy));
        Offer { strategy: method.strategy, refused }
    });
    let beside = rustix::fs::fstat(location.parent());
    Ok(ProbeReport {
        src: file_system_report(src, source.directory(), source.identity().0),
        dst: file_system_report(dst, location.parent(), beside.map_or(0, |stat| identity(&stat).0)),
        offers: offers.collect(),
        chosen,
    })
}

/// Opens a location inside `dst` if that is a directory, otherwise `dst`. Returns whether it is a directory.
fn location_of(dst: &Path) -> Result<(Location, bool), Error> {
    let inside = dst.join(".calve-probe");
    let is_directory = dst.is_dir();
    let target = if is_directory { inside.as_path() } else { dst };
    let location = Location::open(target)?.ok_or_else(|| Error::io(Operation::Open, dst, Errno::INVAL))?;
    Ok((location, is_directory))
}

fn try_at(location: &Location, source: &Source, facts: &mut Facts) -> Result<(), Error> {
    let mut staging = Staging::reserve(location)?;
    staging.make_root(RootKind::Closed)?;
    facts.try_in(source, &staging).map(|_| ())
}

fn file_system_report(path: &Path, directory: BorrowedFd<'_>, device: u64) -> FileSystemReport {
    FileSystemReport {
        path: path.to_path_buf(),
        file_system: sys::file_system_name(directory),
        mount_options: sys::mount_options(directory),
        device: format!("{}:{}", rustix::fs::major(device as _), rustix::fs::minor(device as _)),
    }
}
