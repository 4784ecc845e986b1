//! Finds out by trying what a pair of places can do.

use std::io;
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_INVALID_NAME, ERROR_WRITE_PROTECT, GENERIC_READ};
use windows_sys::Win32::Storage::FileSystem::FILE_READ_ATTRIBUTES;

use super::location::{Location, below, code, resolve};
use super::source::Source;
use super::staging::Staging;
use crate::choice::{Refusal, Requirement, Strategy};
use crate::choose::{Criteria, RefusalReason, choose};
use crate::error::{Error, RoomUnit, ShownPath};
use crate::operation::Operation;
use crate::options::CloneOptions;
use crate::remedy::Remedy;
use crate::report::{FileSystemReport, Offer, ProbeReport};
use crate::sys::{self, Volume};

/// Why each strategy cannot be used, for those that cannot.
pub(super) struct Facts {
    reflink: Result<(), RefusalReason>,
    hardlink: Result<(), RefusalReason>,
    pub(super) src: Volume,
    pub(super) dst: Volume,
}

const ELSEWHERE: &str = "source and destination are on different volumes";

impl Facts {
    /// Asks the two volumes.
    pub(super) fn between(source: &Source, location: &Location) -> Result<Self, Error> {
        let volume = |path: &Path, shown: &Path| {
            sys::open(path, FILE_READ_ATTRIBUTES)
                .and_then(|directory| sys::volume(&directory, path))
                .map_err(|error| Error::io(Operation::LookAtVolume, shown, error))
        };
        let src = volume(source.directory(), source.given())?;
        let dst = volume(location.parent(), &location.given_parent())?;
        let same = src.serial == dst.serial;
        let hardlink = if same { Ok(()) } else { Err(RefusalReason::new(ELSEWHERE)) };
        let reflink = match same {
            false => Err(RefusalReason::new(ELSEWHERE)),
            true if src.clones_blocks => Ok(()),
            true => Err(RefusalReason::new(format!("{} has no block cloning", src.file_system))
                .with_remedy(Remedy::UseDevDrive)),
        };
        Ok(Self { reflink, hardlink, src, dst })
    }

    /// Tries sharing a file in the empty staged directory, which is the only way to find out.
    pub(super) fn try_in(&mut self, source: &Source, staging: &Staging<'_>) -> Result<(), Error> {
        let failed = |error| Error::io(Operation::Create, staging.path(), error);
        let path = staging.path().join(".calve-probe");
        let target = sys::create_file(&path).map_err(failed)?;
        if self.reflink.is_ok() {
            // A file that is in use, or special in another way, says nothing of the others.
            let share =
                |sample: &PathBuf| sys::open(sample, GENERIC_READ).and_then(|file| sys::reflink(&file, &target));
            let mut failures = Vec::new();
            let one_is_shared =
                samples(source).iter().any(|sample| share(sample).map_err(|error| failures.push(error)).is_ok());
            if let (false, Some(error)) = (one_is_shared, failures.first()) {
                self.reflink = Err(RefusalReason::new(format!("sharing the blocks of a file failed: {error}")));
            }
        }
        drop(target);
        std::fs::remove_file(&path).map_err(failed)
    }

    /// Returns the strategy to use, and the refusals of those before it.
    pub(super) fn choose(&self, criteria: &Criteria) -> Result<(Strategy, Vec<Refusal>), Error> {
        choose(Strategy::ALL, |strategy| *strategy, |strategy| self.accepts(*strategy, criteria), criteria, &[])
    }

    fn accepts(&self, strategy: Strategy, criteria: &Criteria) -> Result<(), RefusalReason> {
        if criteria.requires(Requirement::Stable) {
            return Err(RefusalReason::new("on Windows it cannot tell whether the source changes"));
        }
        match strategy {
            Strategy::Snapshot => Err(RefusalReason::new("Windows has no snapshots of directories")),
            Strategy::Clonefile => Err(RefusalReason::new("only macOS has clonefile")),
            Strategy::Overlay => Err(RefusalReason::new("only Linux has OverlayFS")),
            Strategy::Spare => Err(RefusalReason::new("spares are for Linux")),
            Strategy::Reflink => self.reflink.clone(),
            Strategy::Hardlink => self.hardlink.clone(),
            Strategy::Copy => Ok(()),
        }
    }
}

/// Finds some files that have contents.
fn samples(source: &Source) -> Vec<PathBuf> {
    const MOST: usize = 8;
    const MOST_DIRECTORIES: usize = 256;
    if let Some(name) = source.single() {
        return vec![source.directory().join(name)];
    }
    let (mut found, mut waiting) = (Vec::new(), vec![source.directory().to_path_buf()]);
    for _ in 0..MOST_DIRECTORIES {
        let Some(directory) = waiting.pop() else { break };
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match (entry.file_type(), entry.metadata()) {
                (Ok(kind), Ok(metadata)) if kind.is_file() && metadata.len() > 0 => found.push(entry.path()),
                (Ok(kind), _) if kind.is_dir() => waiting.push(entry.path()),
                _ => {}
            }
            if found.len() == MOST {
                return found;
            }
        }
    }
    found
}

/// Finds out what cloning `src` to `dst` could use. Where `dst` is a directory, into it; otherwise beside it.
///
/// Makes one hidden file in a hidden directory there, and removes both. Where nothing can be made for want of permission, every
/// strategy is refused for that reason if it has none of its own.
pub fn probe(src: &Path, dst: &Path) -> Result<ProbeReport, Error> {
    let source = Source::open(src)?;
    let is_directory = std::fs::metadata(dst).is_ok_and(|found| found.is_dir());
    let target = if is_directory { below(dst, Path::new(".calve-probe")) } else { dst.to_path_buf() };
    let location = Location::open(&target)?.ok_or_else(|| Error::io(Operation::Open, dst, code(ERROR_INVALID_NAME)))?;
    let mut facts = Facts::between(&source, &location)?;
    let unwritable = match Staging::make(&location).and_then(|staging| facts.try_in(&source, &staging)) {
        Ok(()) => None,
        Err(error) if [ERROR_ACCESS_DENIED, ERROR_WRITE_PROTECT].iter().any(|number| error.is_errno(code(*number))) => {
            let reason = io::Error::from_raw_os_error(error.errno().unwrap_or_default());
            Some(RefusalReason::new(format!("cannot write to `{}`: {reason}", ShownPath(location.given_parent()))))
        }
        Err(error) => return Err(error),
    };
    let criteria = Criteria::of(&CloneOptions::default());
    let chosen = match unwritable {
        None => Some(facts.choose(&criteria)?.0),
        Some(_) => None,
    };
    let offers = Strategy::ALL.map(|strategy| {
        let own = facts.accepts(strategy, &criteria).err();
        let refused = own.or_else(|| unwritable.clone()).map(|reason| reason.by(strategy));
        Offer { strategy, refused }
    });
    let report = |path: &Path, volume: &Volume| FileSystemReport {
        path: path.to_path_buf(),
        file_system: volume.file_system.clone(),
        // Written as `vol` does: two halves of the volume's serial number.
        device: (volume.serial >> 16, volume.serial & 0xffff),
    };
    Ok(ProbeReport { src: report(src, &facts.src), dst: report(dst, &facts.dst), offers: offers.into(), chosen })
}

/// Fails if the bytes of `source` do not fit. Walks the tree only if the volumes' sizes leave that open.
pub(super) fn check_room(source: &Source, location: &Location, facts: &Facts) -> Result<(), Error> {
    let Some(available) = facts.dst.free else { return Ok(()) };
    if facts.src.used.is_some_and(|used| used <= available) {
        return Ok(());
    }
    let needed = match source.single() {
        Some(name) => sys::look(&source.directory().join(name)).map_or(0, |info| info.size),
        None => size_below(source.directory()),
    };
    if needed <= available {
        return Ok(());
    }
    Err(Error::NoRoom { path: location.given().to_path_buf(), needed, available, unit: RoomUnit::Bytes })
}

fn size_below(directory: &Path) -> u64 {
    let mut size = 0;
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        // The clone will name entries that cannot be read.
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match (entry.file_type(), entry.metadata()) {
                (Ok(kind), _) if kind.is_dir() => waiting.push(entry.path()),
                (Ok(kind), Ok(metadata)) if kind.is_file() => size += metadata.len(),
                _ => {}
            }
        }
    }
    size
}

/// Returns the path that `path` leads to, with links followed.
pub(super) fn resolved(path: &Path, given: &Path) -> Result<PathBuf, Error> {
    resolve(path).map_err(|error| Error::io(Operation::Open, given, error))
}
