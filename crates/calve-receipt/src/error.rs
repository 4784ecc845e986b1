//! Errors, as the program prints them and the packages for other languages hand them over.

use std::io::{self, ErrorKind};

use calve_core::{Error, Operation};
use serde::Serialize;

use crate::sys;
use crate::values::{ReceiptPath, Refusal, path, refusals};

/// The part of an error that programs go by. The `message` says what happened; `hint` is worded by whoever talks to people, from the
/// name of the `remedy`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.error/1")]
pub struct ErrorReceipt {
    /// A stable word for each kind of error.
    pub code: &'static str,
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
}

impl ErrorReceipt {
    /// Returns an error that only has a message and perhaps a hint.
    pub fn new(code: &'static str, message: String, hint: Option<String>) -> Self {
        Self {
            code,
            message,
            errno: None,
            errno_name: None,
            path: None,
            operation: None,
            hint,
            refused: None,
            remedy: None,
        }
    }

    /// Returns an error of the system.
    pub fn of_system(error: &io::Error, hint: Option<String>) -> Self {
        let errno = error.raw_os_error();
        let code = code_of_system(error);
        Self { errno, errno_name: errno.map(sys::error_name), ..Self::new(code, error.to_string(), hint) }
    }
}

impl From<&Error> for ErrorReceipt {
    fn from(error: &Error) -> Self {
        let number = errno(error);
        let operation = if let Error::Io { operation, .. } = error { Some(operation.to_string()) } else { None };
        let refused =
            if let Error::RequirementRefused { refused, .. } = error { Some(refusals(refused)) } else { None };
        Self {
            errno: number,
            errno_name: number.map(sys::error_name),
            path: error_path(error).map(path),
            operation,
            refused,
            remedy: error.remedy().map(|remedy| remedy.name()),
            ..Self::new(code(error), error.to_string(), None)
        }
    }
}

/// Returns the operating system's number for an error: its own, or the closest.
pub fn errno(error: &Error) -> Option<i32> {
    error.errno().or_else(|| sys::closest(error))
}

/// Returns a stable word for each kind of error.
pub fn code(error: &Error) -> &'static str {
    match error {
        // For files that are written many at a time: the directory that one should be in.
        Error::Io { operation: Operation::EnterDirectory, source, .. } if source.kind() == ErrorKind::NotFound => {
            "ERR_CALVE_PARENT_MISSING"
        }
        Error::Io { source, .. } => code_of_system(source),
        Error::LinkWithSlash(_) => "ERR_CALVE_NOT_A_DIRECTORY",
        Error::DestinationExists(_) => "ERR_CALVE_DESTINATION_EXISTS",
        Error::Missing(_) => "ERR_CALVE_MISSING",
        Error::ParentMissing(_) => "ERR_CALVE_PARENT_MISSING",
        Error::Same { .. } => "ERR_CALVE_SAME",
        Error::DestinationInsideSource { .. } => "ERR_CALVE_DESTINATION_INSIDE_SOURCE",
        Error::SourceInsideDestination { .. } => "ERR_CALVE_SOURCE_INSIDE_DESTINATION",
        Error::NotClonable { .. } => "ERR_CALVE_NOT_CLONABLE",
        Error::NoRoom { .. } => "ERR_CALVE_NO_ROOM",
        Error::RequirementRefused { .. } => "ERR_CALVE_REQUIREMENT_REFUSED",
        Error::Protected { .. } => "ERR_CALVE_PROTECTED",
        Error::ReplaceUnsupported(_) => "ERR_CALVE_REPLACE_UNSUPPORTED",
        Error::VerifyFailed { .. } => "ERR_CALVE_VERIFY_FAILED",
        Error::NoDedupe { .. } => "ERR_CALVE_NO_DEDUPE",
        Error::Pattern { .. } => "ERR_CALVE_PATTERN",
        Error::OutsideRoot { .. } => "ERR_CALVE_OUTSIDE_ROOT",
        Error::NotAFile { .. } => "ERR_CALVE_NOT_A_FILE",
        Error::StagingLost(_) => "ERR_CALVE_STAGING_LOST",
        #[cfg(unix)]
        Error::Template(_) => "ERR_CALVE_TEMPLATE",
        Error::Interrupted => "ERR_CALVE_ABORTED",
        _ => "ERR_CALVE_OTHER",
    }
}

/// Returns the same words for an error of the system, where there is one.
fn code_of_system(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::NotFound => "ERR_CALVE_MISSING",
        ErrorKind::AlreadyExists => "ERR_CALVE_EXISTS",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "ERR_CALVE_PERMISSION",
        ErrorKind::NotADirectory => "ERR_CALVE_NOT_A_DIRECTORY",
        ErrorKind::IsADirectory => "ERR_CALVE_IS_A_DIRECTORY",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "ERR_CALVE_NO_ROOM",
        _ => "ERR_CALVE_IO",
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
        #[cfg(unix)]
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

    #[cfg(unix)]
    #[test]
    fn files_that_cannot_be_written_have_a_code_for_each_reason() {
        use std::path::Path;

        use calve_core::{ExistingFile, WriteEntry, WriteOptions, write_files};

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
            ("file", ExistingFile::Refuse, "ERR_CALVE_EXISTS"),
            ("none/file", ExistingFile::Overwrite, "ERR_CALVE_PARENT_MISSING"),
            ("file/below", ExistingFile::Overwrite, "ERR_CALVE_NOT_A_DIRECTORY"),
            ("directory", ExistingFile::Overwrite, "ERR_CALVE_IS_A_DIRECTORY"),
            ("../file", ExistingFile::Overwrite, "ERR_CALVE_OUTSIDE_ROOT"),
        ] {
            assert_eq!(refused(folder.path(), name, existing), expected, "{name}");
        }
    }

    #[test]
    fn what_the_system_says_has_the_same_code_whatever_was_being_done() {
        for (kind, expected) in [
            (ErrorKind::NotFound, "ERR_CALVE_MISSING"),
            (ErrorKind::PermissionDenied, "ERR_CALVE_PERMISSION"),
            (ErrorKind::StorageFull, "ERR_CALVE_NO_ROOM"),
            (ErrorKind::TimedOut, "ERR_CALVE_IO"),
        ] {
            let error = Error::Io { operation: Operation::MoveToTrash, path: "a".into(), source: kind.into() };
            assert_eq!(code(&error), expected);
        }
    }
}
