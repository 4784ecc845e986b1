//! Errors as JSON, printed by the program and returned by the packages for other languages.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use calve_core::error::{Operation, Remedy, TemplateError};
use calve_core::internal::json::{ErrorName, FromReport as _};
use calve_core::{Error, Refusal};
use rustix::io::Errno;
use serde::Serialize;
use strum::{IntoStaticStr, VariantNames};

use crate::values::{ReceiptPath, path};

/// The kind of an error. A later version may have more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr, VariantNames, Serialize)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", prefix = "ERR_CALVE_")]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema), schemars(extend("enum" = Self::VARIANTS)))]
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
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
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
    #[cfg(feature = "program")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<Vec<calve_git::worktree::UnsavedReceipt>>,
}

impl ErrorReceipt {
    pub fn new(code: ErrorCode, message: String, hint: Option<String>) -> Self {
        Self { code, message, hint, ..Self::default() }
    }

    pub fn of_system(error: &io::Error, hint: Option<String>) -> Self {
        let (code, closest) = of_kind(error.kind());
        let errno = error.raw_os_error().or(closest.map(Errno::raw_os_error));
        Self { errno, errno_name: errno.as_ref().map(error_name), ..Self::new(code, error.to_string(), hint) }
    }
}

impl From<&Error> for ErrorReceipt {
    fn from(error: &Error) -> Self {
        let (code, _, about) = parts(error);
        let (number, remedy) = (errno(error), error.remedy());
        let operation = if let Error::Io { operation, .. } = error { Some(operation.to_string()) } else { None };
        let refused = if let Error::RequirementRefused { refused, .. } = error { Some(refused.clone()) } else { None };
        Self {
            errno: number,
            errno_name: number.as_ref().map(error_name),
            path: about.map(path),
            operation,
            refused,
            remedy: remedy.as_ref().map(Into::into),
            ..Self::new(code, error.to_string(), remedy.as_ref().map(Remedy::to_string))
        }
    }
}

fn error_name(errno: &i32) -> String {
    ErrorName::from_report(errno).0
}

/// Returns the system's number for an error: its own, or the closest.
pub fn errno(error: &Error) -> Option<i32> {
    error.errno().or_else(|| Some(parts(error).1?.raw_os_error()))
}

/// Returns an error's code, the closest system error number, and its path.
fn parts(error: &Error) -> (ErrorCode, Option<Errno>, Option<&Path>) {
    let (code, errno, path) = match error {
        // A bulk write lacks a file's parent directory.
        Error::Io { operation: Operation::EnterDirectory, source, path } if source.kind() == ErrorKind::NotFound => {
            (ErrorCode::ParentMissing, Errno::NOENT, Some(path))
        }
        Error::Io { source, path, .. } => {
            let (code, errno) = of_kind(source.kind());
            return (code, errno, Some(path));
        }
        Error::Template(error) => return (ErrorCode::Template, Some(of_template(error)), error.path()),
        Error::DestinationExists(path) => (ErrorCode::DestinationExists, Errno::EXIST, Some(path)),
        Error::Missing(path) => (ErrorCode::Missing, Errno::NOENT, Some(path)),
        Error::ParentMissing(path) => (ErrorCode::ParentMissing, Errno::NOENT, Some(path)),
        Error::Same { dst, .. } => (ErrorCode::Same, Errno::INVAL, Some(dst)),
        Error::DestinationInsideSource { dst, .. } => (ErrorCode::DestinationInsideSource, Errno::INVAL, Some(dst)),
        Error::SourceInsideDestination { dst, .. } => (ErrorCode::SourceInsideDestination, Errno::INVAL, Some(dst)),
        Error::NotClonable { path, .. } => (ErrorCode::NotClonable, Errno::INVAL, Some(path)),
        Error::NoRoom { path, .. } => (ErrorCode::NoRoom, Errno::NOSPC, Some(path)),
        Error::RequirementRefused { .. } => (ErrorCode::RequirementRefused, Errno::OPNOTSUPP, None),
        Error::Protected { path, .. } => (ErrorCode::Protected, Errno::PERM, Some(path)),
        Error::LinkWithSlash(path) => (ErrorCode::NotADirectory, Errno::NOTDIR, Some(path)),
        Error::ReplaceUnsupported(path) => (ErrorCode::ReplaceUnsupported, Errno::OPNOTSUPP, Some(path)),
        Error::VerifyFailed { path, .. } => (ErrorCode::VerifyFailed, Errno::IO, Some(path)),
        Error::NoDedupe { path, .. } => (ErrorCode::NoDedupe, Errno::INVAL, Some(path)),
        Error::Pattern { .. } => (ErrorCode::Pattern, Errno::INVAL, None),
        Error::OutsideRoot { path, .. } => (ErrorCode::OutsideRoot, Errno::INVAL, Some(path)),
        Error::NotAFile { path, .. } => (ErrorCode::NotAFile, Errno::INVAL, Some(path)),
        Error::StagingLost(path) => (ErrorCode::StagingLost, Errno::STALE, Some(path)),
        Error::Interrupted => (ErrorCode::Aborted, Errno::CANCELED, None),
        _ => (ErrorCode::Other, Errno::INVAL, None),
    };
    (code, Some(errno), path.map(PathBuf::as_path))
}

fn of_template(error: &TemplateError) -> Errno {
    match error {
        TemplateError::Unknown(_) | TemplateError::Gone { .. } | TemplateError::NotMounted { .. } => Errno::NOENT,
        TemplateError::Exists(_) => Errno::EXIST,
        TemplateError::NotADirectory(_) => Errno::NOTDIR,
        TemplateError::NotOwn(_) => Errno::PERM,
        TemplateError::Changed { .. } | TemplateError::Damaged { .. } => Errno::IO,
        TemplateError::Superseded(_) => Errno::STALE,
        _ => Errno::INVAL,
    }
}

/// Returns the code and the closest number for a kind of error, because fs-err wraps errors and hides their numbers.
fn of_kind(kind: ErrorKind) -> (ErrorCode, Option<Errno>) {
    let (code, errno) = match kind {
        ErrorKind::NotFound => (ErrorCode::Missing, Errno::NOENT),
        ErrorKind::AlreadyExists => (ErrorCode::Exists, Errno::EXIST),
        ErrorKind::PermissionDenied => (ErrorCode::Permission, Errno::ACCESS),
        ErrorKind::ReadOnlyFilesystem => (ErrorCode::Permission, Errno::ROFS),
        ErrorKind::NotADirectory => (ErrorCode::NotADirectory, Errno::NOTDIR),
        ErrorKind::IsADirectory => (ErrorCode::IsADirectory, Errno::ISDIR),
        ErrorKind::StorageFull => (ErrorCode::NoRoom, Errno::NOSPC),
        ErrorKind::QuotaExceeded => (ErrorCode::NoRoom, Errno::DQUOT),
        _ => return (ErrorCode::Io, None),
    };
    (code, Some(errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_a_number_gets_the_closest() {
        let missing = serde_json::to_value(ErrorReceipt::from(&Error::Missing("a".into()))).unwrap();
        assert_eq!((missing["code"].as_str(), missing["path"].as_str()), (Some("ERR_CALVE_MISSING"), Some("a")));
        assert!(missing["errno"].is_number() && missing["remedy"] == "check_spelling");
    }

    #[test]
    fn files_that_cannot_be_written_have_a_code_for_each_reason() {
        use calve_core::bulk::{ExistingFile, WriteEntry, WriteOptions, Writer};

        let folder = tempfile::tempdir().unwrap();
        fs_err::write(folder.path().join("file"), "").unwrap();
        fs_err::create_dir(folder.path().join("directory")).unwrap();
        let refused = |root: &Path, name: &str, existing| {
            let entries = [WriteEntry { path: Path::new(name), contents: b"x" }];
            let mut options = WriteOptions::default();
            options.existing = existing;
            parts(&Writer::open(root, options).unwrap().write(&entries).unwrap_err()).0
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
            assert_eq!(parts(&error).0, expected);
        }
    }
}
