//! The one place that turns errors into messages and exit codes.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path};

use calve_core::Error;
use calve_core::error::{PrivateError, TemplateError};
use calve_core::internal::ShownPath;
use calve_core::internal::json::FromReport as _;
use calve_git::remote::{RemoteError, TransferFailure};
use calve_receipt::{ErrorCode, ErrorReceipt, path};

use crate::wording;
use crate::wording::fitting::fitting;

pub(crate) const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const REFUSED: u8 = 3;
pub(crate) const INTERRUPTED: u8 = 130;

/// Returns the shells' exit code: 127 if the program does not exist, 126 if it cannot be executed.
fn code_of_unstarted(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    /// With a hint that fits this command; `None` if already reported.
    pub(crate) receipt: Option<Box<ErrorReceipt>>,
}

impl<E: ToFailure> From<E> for Failure {
    fn from(error: E) -> Self {
        error.to_failure()
    }
}

impl Failure {
    fn new(code: u8, mut receipt: ErrorReceipt) -> Self {
        receipt.hint = receipt.hint.map(fitting).filter(|hint| !hint.is_empty());
        Self { code, receipt: Some(Box::new(receipt)) }
    }

    /// Builds a failure from its texts. `failed` is its kind if the exit code says only that something failed.
    pub(crate) fn in_words(
        code: u8,
        failed: ErrorCode,
        text: String,
        hint: Option<String>,
        remedy: Option<&'static str>,
    ) -> Self {
        Self::new(code, ErrorReceipt { remedy, ..ErrorReceipt::new(kind(code, failed), text, hint) })
    }

    /// Builds a failure with the command's own text and hint.
    pub(crate) fn stated(code: u8, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::in_words(code, ErrorCode::Other, text.into(), Some(hint.into()), None)
    }

    pub(crate) fn interrupted(hint: &str) -> Self {
        Self::stated(INTERRUPTED, Error::Interrupted.to_string(), hint)
    }

    /// Builds the exit of a command whose failures are already reported, with the worst one's code.
    pub(crate) fn reported(code: u8) -> Self {
        Self { code, receipt: None }
    }

    pub(crate) fn not_started(program: &OsStr, error: io::Error) -> Self {
        let error = crate::sys::without_closed_directories(program, error);
        let text = format!("cannot run `{}`: {error}", ShownPath(Path::new(program)));
        Self::stated(code_of_unstarted(&error), text, "check the name of the command")
    }

    /// Converts an error while `src` was being cloned. Suggests leaving out an unreadable entry.
    pub(crate) fn of_clone(error: &Error, src: &Path) -> Self {
        let leave_out = if may_be_left_out(error, src) { LEAVE_OUT } else { "" };
        let hint = core_hint(error).map(|hint| hint + leave_out);
        Self::new(error.to_failure().code, ErrorReceipt { hint, ..error.into() })
    }
}

/// Returns the kind that corresponds to the exit code, or `failed` if the code says only that something failed.
fn kind(code: u8, failed: ErrorCode) -> ErrorCode {
    match code {
        USAGE => ErrorCode::Usage,
        REFUSED => ErrorCode::RequirementRefused,
        INTERRUPTED => ErrorCode::Aborted,
        _ => failed,
    }
}

pub(crate) trait ToFailure {
    fn to_failure(&self) -> Failure;
}

impl ToFailure for Error {
    fn to_failure(&self) -> Failure {
        let code = match self {
            Self::Interrupted => INTERRUPTED,
            Self::RequirementRefused { .. } => REFUSED,
            Self::Private(PrivateError::NotStarted { source, .. }) => code_of_unstarted(source),
            Self::Private(PrivateError::NotApplied { .. } | PrivateError::HalfApplied { .. }) => FAILED,
            Self::Private(_) => REFUSED,
            Self::Pattern { .. } | Self::Template(TemplateError::BadName { .. }) => USAGE,
            _ => FAILED,
        };
        Failure::new(code, ErrorReceipt { hint: core_hint(self), ..self.into() })
    }
}

fn core_hint(error: &Error) -> Option<String> {
    error.remedy().as_ref().map(wording::core::hint)
}

impl ToFailure for io::Error {
    fn to_failure(&self) -> Failure {
        Failure::new(FAILED, ErrorReceipt::of_system(self, Some(wording::system::hint(self).into())))
    }
}

impl ToFailure for calve_git::Error {
    fn to_failure(&self) -> Failure {
        let code = match self {
            Self::Clone(error) => return error.to_failure(),
            Self::Interrupted => INTERRUPTED,
            _ => FAILED,
        };
        let (hint, remedy) = self.remedy().map(|remedy| (wording::git::hint(&remedy), remedy.into())).unzip();
        let (place, unsaved) = match self {
            Self::Unsaved { path: place, items, .. } => (Some(path(place)), Some(Vec::from_report(items))),
            _ => (None, None),
        };
        let receipt = ErrorReceipt::new(kind(code, ErrorCode::Git), self.to_string(), hint);
        Failure::new(code, ErrorReceipt { path: place, unsaved, remedy, ..receipt })
    }
}

impl ToFailure for RemoteError {
    fn to_failure(&self) -> Failure {
        let code = match self {
            Self::Usage { .. } => USAGE,
            Self::Refused { .. } => REFUSED,
            Self::Interrupted => INTERRUPTED,
            _ => FAILED,
        };
        let receipt = match self {
            Self::NotEmpty(path) => (&Error::DestinationExists(path.clone())).into(),
            Self::Other(calve_git::Error::Clone(error)) => error.into(),
            Self::Other(calve_git::Error::Io(error)) => ErrorReceipt::of_system(error, None),
            Self::Git { trouble: TransferFailure::DiskFull { .. }, .. } => {
                ErrorReceipt::of_system(&io::ErrorKind::StorageFull.into(), None)
            }
            _ => ErrorReceipt::new(kind(code, ErrorCode::Git), String::new(), None),
        };
        let (message, remedy) = (self.to_string(), self.remedy());
        let hint = Some(wording::git::hint(&remedy));
        Failure::new(code, ErrorReceipt { message, hint, remedy: Some(remedy.into()), ..receipt })
    }
}

impl ToFailure for calve_db::Error {
    fn to_failure(&self) -> Failure {
        let code = match self {
            Self::Interrupted | Self::GoesOn(_) => INTERRUPTED,
            error if error.is_usage() => USAGE,
            Self::Strategy { .. } => REFUSED,
            Self::Command { code, .. } => *code,
            _ => FAILED,
        };
        let (hint, name) = self.remedy().map(|remedy| (wording::db::hint(&remedy), remedy.into())).unzip();
        Failure::in_words(code, ErrorCode::Db, self.to_string(), hint, name)
    }
}

impl ToFailure for calve_oci::Error {
    fn to_failure(&self) -> Failure {
        let code = match self {
            Self::Core(error) => return error.to_failure(),
            Self::BadReference { .. } | Self::BadBase(_) | Self::NotLoopback(_) => USAGE,
            _ => FAILED,
        };
        let (hint, name) = self.remedy().map(|remedy| (wording::oci::hint(&remedy), remedy.into())).unzip();
        Failure::in_words(code, ErrorCode::Registry, self.to_string(), hint, name)
    }
}

impl ToFailure for calve_volume::Error {
    fn to_failure(&self) -> Failure {
        let code = match self {
            error if error.is_usage() => USAGE,
            error if error.is_refusal() => REFUSED,
            _ => FAILED,
        };
        let remedy = self.remedy();
        let hint = Some(wording::volume::hint(&remedy));
        Failure::in_words(code, ErrorCode::Volume, self.to_string(), hint, Some(remedy.into()))
    }
}

impl ToFailure for calve_env::Error {
    fn to_failure(&self) -> Failure {
        let (code, remedy) = match self {
            Self::Git(error) => return error.to_failure(),
            Self::Db(error) => return error.to_failure(),
            Self::Io(error) => return error.to_failure(),
            Self::Failed { remedy, .. } => (FAILED, Some(remedy)),
            Self::Refused { remedy, .. } => (REFUSED, remedy.as_ref()),
        };
        Failure::in_words(code, ErrorCode::Other, self.to_string(), remedy.map(ToString::to_string), None)
    }
}

impl ToFailure for calve_bench::BenchError {
    fn to_failure(&self) -> Failure {
        let (code, remedy) = match self {
            Self::Core(error) => return error.to_failure(),
            Self::Git(error) => return error.to_failure(),
            Self::Db(error) => return error.to_failure(),
            Self::Io(error) => return error.to_failure(),
            Self::Failed { remedy, .. } => (FAILED, remedy),
            Self::Usage { remedy, .. } => (USAGE, remedy),
        };
        Failure::in_words(code, ErrorCode::Other, self.to_string(), Some(remedy.to_string()), Some(remedy.into()))
    }
}

/// Formats an error that stops nothing else, with its hint.
pub(crate) fn with_hint(error: &calve_env::Error) -> String {
    let hint = error.to_failure().receipt.and_then(|receipt| receipt.hint);
    hint.map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}"))
}

const LEAVE_OUT: &str = ", or leave it out with `--exclude`";

/// Returns true for an unreadable entry inside the source, which the user may not need.
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
    fn an_error_of_the_system_has_a_hint() {
        let error = fs_err::File::open("/nowhere/file").unwrap_err();
        assert!(with_hint(&error.into()).contains("spelling"));
    }
}
