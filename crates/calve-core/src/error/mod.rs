//! Errors, with the path, the operation and the next step.

mod private;
mod shown_path;
mod template;

use std::io;
use std::path::{Path, PathBuf};

use crate::sys;
use crate::vocabulary::strategy::{Refusal, Requirement};

pub use crate::vocabulary::operation::Operation;
pub use crate::vocabulary::remedy::Remedy;
pub use private::PrivateError;
pub use shown_path::ShownPath;
pub use template::TemplateError;

/// Why an operation failed. The source was not written and nothing was published, with one exception: a clone whose
/// directory could not be synced ([`Operation::SyncName`]) is in place, but may not survive a power failure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{operation} `{}`: {source}", ShownPath(.path))]
    Io { operation: Operation, path: PathBuf, source: io::Error },
    #[error("`{}` already exists", ShownPath(.0))]
    DestinationExists(PathBuf),
    #[error("cannot replace the empty directory `{}`: {reason}", ShownPath(.path))]
    NotReplaceable { path: PathBuf, reason: &'static str },
    #[error("`{}` does not exist", ShownPath(.0))]
    Missing(PathBuf),
    #[error("the parent directory `{}` does not exist", ShownPath(.0))]
    ParentMissing(PathBuf),
    #[error("`{}` and `{}` are the same", ShownPath(.src), ShownPath(.dst))]
    Same { src: PathBuf, dst: PathBuf },
    /// The clone would contain itself.
    #[error("the destination `{}` is inside the source `{}`", ShownPath(.dst), ShownPath(.src))]
    DestinationInsideSource { src: PathBuf, dst: PathBuf },
    #[error("the source `{}` is inside the destination `{}`", ShownPath(.src), ShownPath(.dst))]
    SourceInsideDestination { src: PathBuf, dst: PathBuf },
    /// A socket, or another file that cannot be copied.
    #[error("cannot clone `{}`: it is a {kind}", ShownPath(.path))]
    NotClonable { path: PathBuf, kind: &'static str },
    /// Found before writing any data.
    #[error("`{}` needs {}, and only {} are free", ShownPath(.path), amount(*.needed, *unit), amount(*.available, *unit))]
    NoRoom { path: PathBuf, needed: u64, available: u64, unit: RoomUnit },
    /// Nothing was made.
    #[error("{}", required(.requirement, .refused, .detail))]
    RequirementRefused {
        requirement: StatedRequirement,
        /// Every strategy that declined, with its reason.
        refused: Vec<Refusal>,
        /// The obstacle, when it is not a strategy's refusal.
        detail: Option<String>,
    },
    #[error("refusing to remove `{}`: {reason}", ShownPath(.path))]
    Protected { path: PathBuf, reason: Protection },
    /// Calve never removes a directory through a symlink.
    #[error("`{}` is a symlink; with the trailing slash it means its target", ShownPath(.0))]
    LinkWithSlash(PathBuf),
    #[error("cannot replace `{}` in one step: this file system has no atomic exchange", ShownPath(.0))]
    ReplaceUnsupported(PathBuf),
    #[error("the clone differs from `{}`: {first} ({count} differences)", ShownPath(.path))]
    VerifyFailed { path: PathBuf, count: usize, first: String },
    #[error("files on `{}` ({file_system}) cannot share their contents", ShownPath(.path))]
    NoDedupe { path: PathBuf, file_system: String },
    #[error("the pattern `{}` is not valid: {reason}", ShownPath(.pattern))]
    Pattern { pattern: String, reason: String },
    /// The path as given, or its part that leads outside of the root or could.
    #[error("refusing to write `{}`: {reason}", ShownPath(.path))]
    OutsideRoot { path: PathBuf, reason: &'static str },
    #[error("cannot {operation} `{}`: it is a {kind}", ShownPath(.path))]
    NotAFile { operation: Operation, path: PathBuf, kind: &'static str },
    #[error("`{}` was moved or replaced by another process while the clone was being made", ShownPath(.0))]
    StagingLost(PathBuf),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// The path is the source, or its entry in the way.
    #[error("no spare can be made of `{}`: {reason}", ShownPath(.path))]
    NoSpare { path: PathBuf, reason: &'static str },
    /// The file `record` says that the file system was mounted at `path`.
    #[error("the spares of `{}` are on a file system that is not mounted: `{}`", ShownPath(.source_path), ShownPath(.path))]
    SparesNotMounted { source_path: PathBuf, path: PathBuf, record: PathBuf },
    #[error("interrupted")]
    Interrupted,
}

/// The requirement that the caller insisted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StatedRequirement {
    #[error("the requirement `{0}` cannot be met here")]
    Property(Requirement),
    #[error("the strategy `{0}` cannot be used here")]
    Strategy(crate::vocabulary::strategy::Strategy),
}

impl Error {
    pub(crate) fn io(operation: Operation, path: impl Into<PathBuf>, reason: impl Into<io::Error>) -> Self {
        Self::Io { operation, path: path.into(), source: without_path(reason.into()) }
    }

    /// Returns the error for a property that the clone cannot have, whatever the strategy.
    pub(crate) fn unmet(property: Requirement, detail: String) -> Self {
        let requirement = StatedRequirement::Property(property);
        Self::RequirementRefused { requirement, refused: Vec::new(), detail: Some(detail) }
    }

    /// Returns the operating system's error number, if there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    pub(crate) fn is_errno(&self, errno: impl Into<io::Error>) -> bool {
        self.errno() == errno.into().raw_os_error()
    }

    /// Returns the user's next step. Only an interruption has none.
    pub fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Io { operation: Operation::DeleteContents, .. } => Remedy::DeleteAsRoot,
            Self::Io { source, operation, .. } => sys::remedy(source, *operation),
            Self::DestinationExists(path) if ends_in_no_name(path) => Remedy::NameDirectoryFromOutside,
            Self::DestinationExists(_) => Remedy::ChooseAnotherDestinationOrReplace,
            Self::Missing(_) => Remedy::CheckSpelling,
            Self::ParentMissing(path) => Remedy::CreateDirectory(path.clone()),
            Self::NotReplaceable { .. } | Self::Same { .. } => Remedy::ChooseAnotherDestination,
            Self::DestinationInsideSource { .. } => Remedy::CloneOutsideSource,
            Self::SourceInsideDestination { .. } => Remedy::MoveSourceOut,
            Self::NotClonable { .. } => Remedy::CloneAnotherKind,
            Self::NoRoom { path, .. } => Remedy::FreeSpaceOrShare(path.clone()),
            Self::RequirementRefused {
                requirement: StatedRequirement::Property(Requirement::Stable),
                detail: Some(_),
                ..
            } => Remedy::KeepSourceStill,
            Self::RequirementRefused { .. } => Remedy::ProbeOrDropRequirement,
            Self::Protected { reason, .. } => reason.remedy(),
            Self::LinkWithSlash(_) => Remedy::DropSlash,
            Self::ReplaceUnsupported(_) => Remedy::RemoveOldTree,
            Self::VerifyFailed { .. } => Remedy::RetryWhileIdle,
            Self::NoDedupe { .. } => Remedy::MoveToSharingFileSystem,
            Self::Pattern { .. } => Remedy::CorrectPattern,
            Self::OutsideRoot { .. } => Remedy::GiveRelativePaths,
            Self::NotAFile { .. } => Remedy::NameRegularFile,
            Self::StagingLost(_) => Remedy::RetryWithoutCleaner,
            Self::Template(error) => error.remedy(),
            Self::Private(error) => error.remedy(),
            Self::NoSpare { .. } => Remedy::CloneWithoutSpare,
            Self::SparesNotMounted { path, record, .. } => {
                Remedy::MountPlace { mount_point: path.clone(), record: record.clone() }
            }
            Self::Interrupted => return None,
        })
    }
}

/// Names the operation and the path of a failed call.
pub(crate) trait IoContext<T> {
    fn io(self, operation: Operation, path: impl Into<PathBuf>) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> IoContext<T> for Result<T, E> {
    fn io(self, operation: Operation, path: impl Into<PathBuf>) -> Result<T, Error> {
        self.map_err(|reason| Error::io(operation, path, reason))
    }
}

/// Why a path is not removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Protection {
    #[error("it is the root of the file system")]
    Root,
    #[error("its name is `/`, `.` or `..`")]
    NoName,
    /// The path that was named.
    #[error("it is a mount point")]
    MountPoint(PathBuf),
    #[error("`{}` is mounted below it", ShownPath(.0))]
    MountBelow(PathBuf),
    #[error("the current directory is inside it")]
    CurrentDirectory,
    #[error("it is a directory of the system")]
    System,
    #[error("it is, or contains, the protected directory `{}`", ShownPath(.0))]
    Contains(PathBuf),
    /// Another process has put something else at the path. It is now at this one, if it could not be moved back.
    #[error("something else has taken its place{}", moved_to(.0))]
    Exchanged(Option<PathBuf>),
}

impl Protection {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Root => Remedy::NameEntriesOfRoot,
            Self::NoName => Remedy::NameDirectoryFromOutside,
            Self::MountPoint(mount) | Self::MountBelow(mount) => Remedy::Unmount(mount.clone()),
            Self::CurrentDirectory => Remedy::LeaveDirectory,
            Self::System | Self::Contains(_) => Remedy::NameUnprotected,
            Self::Exchanged(_) => Remedy::StopWrites,
        }
    }
}

/// The resource that a file system lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomUnit {
    Bytes,
    Inodes,
}

/// Formats bytes in units of 1,000, as disks are sold.
fn amount(number: u64, unit: RoomUnit) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB"];
    match unit {
        RoomUnit::Inodes => return format!("{number} inodes"),
        RoomUnit::Bytes if number < 1000 => return format!("{number} bytes"),
        RoomUnit::Bytes => {}
    }
    let thousands = (number.ilog10() as usize / 3).min(units.len());
    format!("{:.1} {}", number as f64 / 1000f64.powi(thousands as i32), units[thousands - 1])
}

fn moved_to(path: &Option<PathBuf>) -> String {
    path.as_ref().map_or_else(String::new, |path| format!(", and that is now at `{}`", ShownPath(path)))
}

/// Returns whether a path is `/` or ends in `.` or `..`. As it is no entry of a directory, nothing can take its place.
fn ends_in_no_name(path: &Path) -> bool {
    let mut parts = path.as_os_str().as_encoded_bytes().rsplit(|byte| *byte == b'/').filter(|part| !part.is_empty());
    parts.next().is_none_or(|last| last == b"." || last == b"..")
}

fn required(requirement: &StatedRequirement, refused: &[Refusal], detail: &Option<String>) -> String {
    let detail = detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
    let refused = refused.iter().map(|refusal| format!("\n  {}: {}", refusal.strategy, refusal.reason));
    format!("{requirement}{detail}{}", refused.collect::<String>())
}

/// Returns the system's error inside one of fs-err, whose path would appear twice in [`Error::Io`].
pub fn without_path(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.source()).and_then(|inner| inner.downcast_ref::<io::Error>());
    match inner.and_then(io::Error::raw_os_error) {
        Some(number) => io::Error::from_raw_os_error(number),
        None => error,
    }
}

/// Returns `None` for an error that says that nothing is there.
pub fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn what_ends_in_no_name_is_known() {
        for path in ["/", "//", ".", "..", "./", "a/.", "a/..", "a/../", ""] {
            assert!(ends_in_no_name(Path::new(path)), "{path}");
        }
        for path in ["a", "a/", "./a", "../a//", "...", "/a", ".a"] {
            assert!(!ends_in_no_name(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn control_characters_and_undecodable_bytes_are_escaped() {
        assert_eq!(ShownPath("a\x1b[31m\nz").to_string(), "a\\u{1b}[31m\\nz");
        assert_eq!(ShownPath(OsStr::from_bytes(b"a\xffz")).to_string(), "a\\xffz");
    }
}
