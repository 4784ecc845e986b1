//! Errors, as the program prints them and the packages for other languages hand them over.

use std::io::{self, ErrorKind};

use calve_core::Error;
use calve_core::error::{Operation, Remedy};
use calve_core::internal::json::{ErrorName, FromReport as _};
use serde::Serialize;
use strum::{IntoStaticStr, VariantNames};

use crate::sys;
use crate::values::{ReceiptPath, Refusal, path};
use crate::worktree::UnsavedReceipt;

/// The kind of an error. A later version may have more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr, VariantNames, Serialize)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", prefix = "ERR_CALVE_")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("enum" = Self::VARIANTS)))]
#[serde(into = "&'static str")]
pub enum ErrorCode {
    Aborted,
    Db,
    DestinationExists,
    DestinationInsideSource,
    Exists,
    Git,
    Internal,
    Io,
    IsADirectory,
    Missing,
    NoDedupe,
    NoRoom,
    NotADirectory,
    NotAFile,
    NotClonable,
    #[default]
    Other,
    OutsideRoot,
    ParentMissing,
    Pattern,
    Permission,
    Protected,
    Registry,
    ReplaceUnsupported,
    RequirementRefused,
    Same,
    SourceInsideDestination,
    StagingLost,
    Template,
    Usage,
    VerifyFailed,
    Volume,
}

/// An error. Whoever talks to people words the `hint`, from the name of the `remedy`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.error/1")]
pub struct ErrorReceipt {
    /// A stable word for each kind of error.
    pub code: ErrorCode,
    /// The error in one sentence, for people.
    pub message: String,
    /// The system's error number: its own, or the closest.
    pub errno: Option<i32>,
    /// The name of that number, such as `ENOSPC`.
    pub errno_name: Option<String>,
    /// The path that the error is about.
    pub path: Option<ReceiptPath>,
    /// The operation that failed, in words.
    pub operation: Option<String>,
    /// The next step, in words.
    pub hint: Option<String>,
    /// The strategies that were refused, with their reasons.
    pub refused: Option<Vec<Refusal>>,
    /// A stable name of what to do next.
    pub remedy: Option<&'static str>,
    /// Everything in a worktree that exists nowhere else, if that is why it was not removed. Absent for other errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<Vec<UnsavedReceipt>>,
}

impl ErrorReceipt {
    /// Returns an error that only has a message and perhaps a hint.
    pub fn new(code: ErrorCode, message: String, hint: Option<String>) -> Self {
        Self { code, message, hint, ..Self::default() }
    }

    /// Returns an error of the system.
    pub fn of_system(error: &io::Error, hint: Option<String>) -> Self {
        let errno = error.raw_os_error().or_else(|| sys::of_kind(error.kind()));
        let code = code_of_system(error);
        Self { errno, errno_name: errno.as_ref().map(error_name), ..Self::new(code, error.to_string(), hint) }
    }
}

impl From<&Error> for ErrorReceipt {
    fn from(error: &Error) -> Self {
        let (number, remedy) = (errno(error), error.remedy());
        let operation = if let Error::Io { operation, .. } = error { Some(operation.to_string()) } else { None };
        let refused = if let Error::RequirementRefused { refused, .. } = error { Some(refused.clone()) } else { None };
        Self {
            errno: number,
            errno_name: number.as_ref().map(error_name),
            path: error_path(error).map(path),
            operation,
            refused,
            remedy: remedy.as_ref().map(Remedy::name),
            ..Self::new(code(error), error.to_string(), remedy.as_ref().map(Remedy::to_string))
        }
    }
}

fn error_name(errno: &i32) -> String {
    ErrorName::from_report(errno).0
}

/// Returns the operating system's number for an error: its own, or the closest.
pub fn errno(error: &Error) -> Option<i32> {
    error.errno().or_else(|| sys::closest(error))
}

/// Returns a stable word for each kind of error.
fn code(error: &Error) -> ErrorCode {
    match error {
        // For files that are written many at a time: the directory that one should be in.
        Error::Io { operation: Operation::EnterDirectory, source, .. } if source.kind() == ErrorKind::NotFound => {
            ErrorCode::ParentMissing
        }
        Error::Io { source, .. } => code_of_system(source),
        Error::LinkWithSlash(_) => ErrorCode::NotADirectory,
        Error::DestinationExists(_) => ErrorCode::DestinationExists,
        Error::Missing(_) => ErrorCode::Missing,
        Error::ParentMissing(_) => ErrorCode::ParentMissing,
        Error::Same { .. } => ErrorCode::Same,
        Error::DestinationInsideSource { .. } => ErrorCode::DestinationInsideSource,
        Error::SourceInsideDestination { .. } => ErrorCode::SourceInsideDestination,
        Error::NotClonable { .. } => ErrorCode::NotClonable,
        Error::NoRoom { .. } => ErrorCode::NoRoom,
        Error::RequirementRefused { .. } => ErrorCode::RequirementRefused,
        Error::Protected { .. } => ErrorCode::Protected,
        Error::ReplaceUnsupported(_) => ErrorCode::ReplaceUnsupported,
        Error::VerifyFailed { .. } => ErrorCode::VerifyFailed,
        Error::NoDedupe { .. } => ErrorCode::NoDedupe,
        Error::Pattern { .. } => ErrorCode::Pattern,
        Error::OutsideRoot { .. } => ErrorCode::OutsideRoot,
        Error::NotAFile { .. } => ErrorCode::NotAFile,
        Error::StagingLost(_) => ErrorCode::StagingLost,
        Error::Template(_) => ErrorCode::Template,
        Error::Interrupted => ErrorCode::Aborted,
        _ => ErrorCode::Other,
    }
}

/// Returns the same words for an error of the system, where there is one.
fn code_of_system(source: &io::Error) -> ErrorCode {
    match source.kind() {
        ErrorKind::NotFound => ErrorCode::Missing,
        ErrorKind::AlreadyExists => ErrorCode::Exists,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => ErrorCode::Permission,
        ErrorKind::NotADirectory => ErrorCode::NotADirectory,
        ErrorKind::IsADirectory => ErrorCode::IsADirectory,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ErrorCode::NoRoom,
        _ => ErrorCode::Io,
    }
}

/// Returns the path that the error is about, where it is about one.
fn error_path(error: &Error) -> Option<&std::path::Path> {
    match error {
        Error::Io { path, .. }
        | Error::NotClonable { path, .. }
        | Error::NoRoom { path, .. }
        | Error::Protected { path, .. }
        | Error::VerifyFailed { path, .. }
        | Error::NoDedupe { path, .. }
        | Error::OutsideRoot { path, .. }
        | Error::NotAFile { path, .. }
        | Error::DestinationExists(path)
        | Error::Missing(path)
        | Error::ParentMissing(path)
        | Error::LinkWithSlash(path)
        | Error::ReplaceUnsupported(path)
        | Error::StagingLost(path) => Some(path),
        Error::Template(error) => error.path(),
        Error::Same { dst, .. }
        | Error::DestinationInsideSource { dst, .. }
        | Error::SourceInsideDestination { dst, .. } => Some(dst),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_a_number_gets_the_closest() {
        let missing = crate::value(&ErrorReceipt::from(&Error::Missing("a".into())));
        assert_eq!((missing["code"].as_str(), missing["path"].as_str()), (Some("ERR_CALVE_MISSING"), Some("a")));
        assert!(missing["errno"].is_number() && missing["remedy"] == "check_spelling");
    }

    #[test]
    fn files_that_cannot_be_written_have_a_code_for_each_reason() {
        use std::path::Path;

        use calve_core::bulk::{ExistingFile, WriteEntry, WriteOptions, write_files};

        let folder = tempfile::tempdir().unwrap();
        fs_err::write(folder.path().join("file"), "").unwrap();
        fs_err::create_dir(folder.path().join("directory")).unwrap();
        let refused = |root: &Path, name: &str, existing| {
            let entries = [WriteEntry { path: Path::new(name), contents: b"x" }];
            let mut options = WriteOptions::default();
            options.existing = existing;
            code(&write_files(root, &entries, options).unwrap_err())
        };
        for (name, existing, expected) in [
            ("file", ExistingFile::Refuse, ErrorCode::Exists),
            ("none/file", ExistingFile::Overwrite, ErrorCode::ParentMissing),
            ("file/below", ExistingFile::Overwrite, ErrorCode::NotADirectory),
            ("directory", ExistingFile::Overwrite, ErrorCode::IsADirectory),
            ("../file", ExistingFile::Overwrite, ErrorCode::OutsideRoot),
        ] {
            assert_eq!(refused(folder.path(), name, existing), expected, "{name}");
        }
    }

    #[test]
    fn what_the_system_says_has_the_same_code_whatever_was_being_done() {
        for (kind, expected) in [
            (ErrorKind::NotFound, ErrorCode::Missing),
            (ErrorKind::PermissionDenied, ErrorCode::Permission),
            (ErrorKind::StorageFull, ErrorCode::NoRoom),
            (ErrorKind::TimedOut, ErrorCode::Io),
        ] {
            let error = Error::Io { operation: Operation::MoveToTrash, path: "a".into(), source: kind.into() };
            assert_eq!(code(&error), expected);
        }
    }
}
