//! The one place that turns what went wrong into words and an exit code.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};

use calve_core::ShownPath;
use calve_core::{Error, PrivateError};
use calve_receipt::{ErrorCode, ErrorReceipt};

use crate::wording;
use crate::wording::fitting::fitting;

pub(crate) const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const REFUSED: u8 = 3;
pub(crate) const INTERRUPTED: u8 = 130;

/// Returns the exit code of shells: 127 if the program does not exist, 126 if it cannot be executed.
fn code_of_unstarted(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Why the program ends with another code than 0.
#[derive(Debug)]
pub(crate) enum Failure {
    Core(Error),
    /// The same, while this source was being cloned.
    Clone {
        error: Error,
        src: PathBuf,
    },
    /// The paths of `calve cp` make no sense together.
    Usage(String),
    Git(calve_git::Error),
    Io(io::Error),
    Db(calve_db::Error),
    Oci(calve_oci::Error),
    Volume(calve_volume::Error),
    /// The result could not be printed. What was asked for was done.
    Output(io::Error),
    /// Ended early by a signal, with what that leaves to do.
    Interrupted(&'static str),
    /// The error, the next step, and the exit code, as the command has them.
    Stated {
        text: String,
        hint: String,
        code: u8,
        /// The stable name of what to do next, where a library has said it.
        remedy: Option<&'static str>,
    },
    /// Some of several operands failed, each reported when it did; the worst code among them.
    Reported(u8),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<calve_git::Error> for Failure {
    fn from(error: calve_git::Error) -> Self {
        match error {
            calve_git::Error::Clone(error) => Self::Core(error),
            other => Self::Git(other),
        }
    }
}

impl From<calve_db::Error> for Failure {
    fn from(error: calve_db::Error) -> Self {
        Self::Db(error)
    }
}

impl From<calve_volume::Error> for Failure {
    fn from(error: calve_volume::Error) -> Self {
        Self::Volume(error)
    }
}

impl From<calve_oci::Error> for Failure {
    fn from(error: calve_oci::Error) -> Self {
        match error {
            calve_oci::Error::Core(error) => Self::Core(error),
            other => Self::Oci(other),
        }
    }
}

impl From<calve_bench::BenchError> for Failure {
    fn from(error: calve_bench::BenchError) -> Self {
        use calve_bench::BenchError;
        let (code, text, remedy) = match error {
            BenchError::Core(error) => return error.into(),
            BenchError::Git(error) => return error.into(),
            BenchError::Db(error) => return error.into(),
            BenchError::Io(error) => return error.into(),
            BenchError::Failed { text, remedy } => (FAILED, text, remedy),
            BenchError::Usage { text, remedy } => (USAGE, text, remedy),
        };
        Self::Stated { text, hint: wording::bench::hint(&remedy), code, remedy: Some(remedy.name()) }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Failure {
    pub(crate) fn stated(code: u8, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Stated { text: text.into(), hint: hint.into(), code, remedy: None }
    }

    /// Describes the failure to start a command of the user's.
    pub(crate) fn not_started(program: &OsStr, error: io::Error) -> Self {
        let error = crate::sys::without_closed_directories(program, error);
        let text = format!("cannot run `{}`: {error}", ShownPath(Path::new(program)));
        Self::stated(code_of_unstarted(&error), text, "check the name of the command after `--`")
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Core(error) | Self::Clone { error, .. } => match error {
                Error::Interrupted => INTERRUPTED,
                Error::RequirementRefused { .. } => REFUSED,
                Error::Private(PrivateError::NotStarted { source, .. }) => code_of_unstarted(source),
                Error::Private(PrivateError::NotApplied { .. } | PrivateError::HalfApplied { .. }) => FAILED,
                Error::Private(_) => REFUSED,
                Error::Pattern { .. } => USAGE,
                Error::Template(calve_core::TemplateError::BadName { .. }) => USAGE,
                _ => FAILED,
            },
            Self::Git(calve_git::Error::Interrupted) => INTERRUPTED,
            Self::Git(_) => FAILED,
            Self::Interrupted(_) => INTERRUPTED,
            Self::Db(error) => match error {
                calve_db::Error::Interrupted => INTERRUPTED,
                error if error.is_usage() => USAGE,
                calve_db::Error::Strategy { .. } => REFUSED,
                calve_db::Error::Command { code, .. } => *code,
                _ => FAILED,
            },
            Self::Oci(calve_oci::Error::BadReference { .. } | calve_oci::Error::NotLoopback(_)) => USAGE,
            Self::Oci(_) => FAILED,
            Self::Volume(error) if error.is_usage() => USAGE,
            Self::Volume(error) => {
                if error.is_refusal() {
                    REFUSED
                } else {
                    FAILED
                }
            }
            Self::Usage(_) => USAGE,
            Self::Io(_) | Self::Output(_) => FAILED,
            Self::Reported(code) | Self::Stated { code, .. } => *code,
        }
    }

    /// Returns the message and a hint that fits this command. Returns `None` if the failure was already reported.
    pub(crate) fn receipt(&self) -> Option<ErrorReceipt> {
        let mut receipt = self.receipt_for_any_command()?;
        receipt.hint = receipt.hint.map(fitting).filter(|hint| !hint.is_empty());
        Some(receipt)
    }

    fn receipt_for_any_command(&self) -> Option<ErrorReceipt> {
        let (code, text, hint, remedy) = match self {
            Self::Core(error) => return Some(ErrorReceipt { hint: core_hint(error), ..error.into() }),
            Self::Clone { error, src } => {
                let leave_out = if may_be_left_out(error, src) { LEAVE_OUT } else { "" };
                let hint = core_hint(error).map(|hint| hint + leave_out);
                return Some(ErrorReceipt { hint, ..error.into() });
            }
            Self::Io(error) => return Some(ErrorReceipt::of_system(error, Some(io_hint(error).into()))),
            Self::Reported(_) => return None,
            Self::Usage(text) => (ErrorCode::Usage, text.clone(), Some("see `calve cp --help`".into()), None),
            Self::Git(error @ calve_git::Error::Unsaved { path, items, .. }) => {
                let remedy = error.remedy();
                let hint = remedy.as_ref().map(wording::git::hint);
                return Some(ErrorReceipt {
                    path: Some(calve_receipt::path(path)),
                    unsaved: Some(wording::unsaved::receipts(items)),
                    remedy: remedy.map(|remedy| remedy.name()),
                    ..ErrorReceipt::new(ErrorCode::Git, error.to_string(), hint)
                });
            }
            Self::Git(error) => {
                let remedy = error.remedy();
                let hint = remedy.as_ref().map(wording::git::hint);
                (self.kind(ErrorCode::Git), error.to_string(), hint, remedy.map(|remedy| remedy.name()))
            }
            Self::Db(error) => {
                let remedy = error.remedy();
                let hint = remedy.as_ref().map(wording::db::hint);
                (self.kind(ErrorCode::Db), error.to_string(), hint, remedy.map(|remedy| remedy.name()))
            }
            Self::Oci(error) => {
                let remedy = error.remedy();
                let hint = remedy.as_ref().map(wording::oci::hint);
                (self.kind(ErrorCode::Registry), error.to_string(), hint, remedy.map(|remedy| remedy.name()))
            }
            Self::Volume(error) => {
                let remedy = error.remedy();
                let hint = wording::volume::hint(&remedy);
                (self.kind(ErrorCode::Volume), error.to_string(), Some(hint), Some(remedy.name()))
            }
            Self::Output(error) => {
                let hint = "only the report is lost: what was asked for was done";
                (ErrorCode::Io, format!("write the report to stdout: {error}"), Some(hint.into()), None)
            }
            Self::Interrupted(hint) => (ErrorCode::Aborted, Error::Interrupted.to_string(), Some((*hint).into()), None),
            Self::Stated { text, hint, remedy, .. } => {
                (self.kind(ErrorCode::Other), text.clone(), Some(hint.clone()), *remedy)
            }
        };
        Some(ErrorReceipt { remedy, ..ErrorReceipt::new(code, text, hint) })
    }

    /// Returns the code that says the same as the exit code, or `failed` if that says only that something failed.
    fn kind(&self, failed: ErrorCode) -> ErrorCode {
        match self.code() {
            USAGE => ErrorCode::Usage,
            REFUSED => ErrorCode::RequirementRefused,
            INTERRUPTED => ErrorCode::Aborted,
            _ => failed,
        }
    }
}

fn core_hint(error: &Error) -> Option<String> {
    error.remedy().as_ref().map(wording::core::hint)
}

/// Returns the remedy against an error of the program's own reading and writing, which names its path.
fn io_hint(error: &io::Error) -> &'static str {
    use io::ErrorKind::{
        AlreadyExists, InvalidFilename, IsADirectory, NotADirectory, NotFound, PermissionDenied, QuotaExceeded,
        ReadOnlyFilesystem, StorageFull,
    };
    match error.kind() {
        NotFound => "check the spelling; what the path leads through must be there already",
        NotADirectory | IsADirectory | InvalidFilename => {
            "check the path: it leads to a file where a directory is needed, or the other way round"
        }
        PermissionDenied => "check the owner and mode of what is named, and of the directory that it is in",
        ReadOnlyFilesystem => "that file system is mounted read-only: name a place that can be written to",
        StorageFull => "free some space there, or name another place",
        QuotaExceeded => "your disk quota is used up: free some space there, or name another place",
        AlreadyExists => "remove what is there, or name another place",
        // Too many files, processes or threads, most of all.
        _ => "check the limits of your session (ulimit -a) and the kernel's log (dmesg), then try again",
    }
}

const LEAVE_OUT: &str = ", or leave it out with `--exclude`";

/// Returns whether this is about an entry inside the source that cannot be read, which the user may not need.
fn may_be_left_out(error: &Error, src: &Path) -> bool {
    let Error::Io { path, source, .. } = error else { return false };
    let inside = path.strip_prefix(src).is_ok_and(|below| {
        let mut parts = below.components().peekable();
        parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
    });
    inside && source.kind() == io::ErrorKind::PermissionDenied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_is_about_what_went_wrong() {
        let hint = |kind: io::ErrorKind| io_hint(&kind.into());
        assert!(hint(io::ErrorKind::NotFound).contains("spelling"));
        assert!(hint(io::ErrorKind::StorageFull).contains("free some space"));
        assert!(hint(io::ErrorKind::PermissionDenied).contains("owner and mode"));
        assert!(hint(io::ErrorKind::ReadOnlyFilesystem).contains("read-only"));
        // EMFILE, which has no kind of its own.
        assert!(hint(io::ErrorKind::Other).contains("ulimit"));
    }
}
