//! The one place that turns what went wrong into words and an exit code.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};

use calve_core::Error;
use calve_core::error::PrivateError;
use calve_core::internal::ShownPath;
use calve_git::remote::{RemoteError, TransferFailure};
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
    Remote(RemoteError),
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

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        Self::Remote(error)
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

impl From<calve_env::Error> for Failure {
    fn from(error: calve_env::Error) -> Self {
        use calve_env::Error;
        let (code, text, remedy) = match error {
            Error::Git(error) => return error.into(),
            Error::Db(error) => return error.into(),
            Error::Io(error) => return error.into(),
            Error::Failed { text, remedy } => (FAILED, text, Some(remedy)),
            Error::Refused { text, remedy } => (REFUSED, text, remedy),
            other => (FAILED, other.to_string(), None),
        };
        Self::stated(code, text, remedy.as_ref().map(wording::env::hint).unwrap_or_default())
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
        Self::Stated { text, hint: remedy.to_string(), code, remedy: Some(remedy.name()) }
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
                Error::Template(calve_core::error::TemplateError::BadName { .. }) => USAGE,
                _ => FAILED,
            },
            Self::Git(calve_git::Error::Interrupted) => INTERRUPTED,
            Self::Git(_) => FAILED,
            Self::Remote(error) => match error {
                RemoteError::Usage { .. } => USAGE,
                RemoteError::Refused { .. } => REFUSED,
                RemoteError::Interrupted => INTERRUPTED,
                _ => FAILED,
            },
            Self::Interrupted(_) => INTERRUPTED,
            Self::Db(error) => match error {
                calve_db::Error::Interrupted | calve_db::Error::GoesOn(_) => INTERRUPTED,
                error if error.is_usage() => USAGE,
                calve_db::Error::Strategy { .. } => REFUSED,
                calve_db::Error::Command { code, .. } => *code,
                _ => FAILED,
            },
            Self::Oci(
                calve_oci::Error::BadReference { .. } | calve_oci::Error::BadBase(_) | calve_oci::Error::NotLoopback(_),
            ) => USAGE,
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
            Self::Io(error) => return Some(ErrorReceipt::of_system(error, Some(wording::system::hint(error).into()))),
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
            Self::Remote(error) => {
                let remedy = error.remedy();
                let (message, hint) = (error.to_string(), Some(wording::git::hint(&remedy)));
                let receipt = match error {
                    RemoteError::NotEmpty(path) => (&Error::DestinationExists(path.clone())).into(),
                    RemoteError::Other(calve_git::Error::Clone(error)) => error.into(),
                    RemoteError::Other(calve_git::Error::Io(error)) => ErrorReceipt::of_system(error, None),
                    RemoteError::Git { trouble: TransferFailure::DiskFull(_), .. } => {
                        ErrorReceipt::of_system(&io::ErrorKind::StorageFull.into(), None)
                    }
                    _ => ErrorReceipt::new(self.kind(ErrorCode::Git), String::new(), None),
                };
                return Some(ErrorReceipt { message, hint, remedy: Some(remedy.name()), ..receipt });
            }
            Self::Db(error) => {
                let remedy = error.remedy();
                let hint = remedy.as_ref().map(wording::db::hint);
                (self.kind(ErrorCode::Db), error.to_string(), hint, remedy.map(|remedy| remedy.name()))
            }
            Self::Oci(error) => {
                let remedy = error.remedy();
                let hint = remedy.as_ref().map(ToString::to_string);
                (self.kind(ErrorCode::Registry), error.to_string(), hint, remedy.map(|remedy| remedy.name()))
            }
            Self::Volume(error) => {
                let remedy = error.remedy();
                let hint = remedy.to_string();
                (self.kind(ErrorCode::Volume), error.to_string(), Some(hint), Some(remedy.name()))
            }
            Self::Output(error) => {
                let hint = "only the report is lost: whatever else was asked for was done";
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
