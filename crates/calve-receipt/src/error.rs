//! Errors, as the packages for other languages hand them over.

use std::io::{self, ErrorKind};

use calve_core::Error;
use serde_json::{Value, json};

use crate::wording::in_a_package;
use crate::{path, refusals, sys};

/// The part of an error that programs go by: `{code, message, errno, errno_name, path, operation, hint, refused}`. Its texts name
/// options and functions, no command of a shell and no flag of the program.
pub fn error(error: &Error) -> Value {
    let number = errno(error);
    json!({
        "code": code(error),
        "message": message(error),
        "errno": number,
        "errno_name": number.map(sys::error_name),
        "path": error_path(error).map(path),
        "operation": if let Error::Io { operation, .. } = error { Some(operation) } else { None },
        "hint": hint(error),
        "refused": if let Error::RequirementRefused { refused, .. } = error { Some(refusals(refused)) } else { None },
    })
}

/// Rewords only this error: it has the program's words. Others may contain paths, which must stay as they are.
fn message(error: &Error) -> String {
    let text = error.to_string();
    if matches!(error, Error::RequirementRefused { .. }) { in_a_package(&text) } else { text }
}

fn hint(error: &Error) -> Option<String> {
    match error {
        // The command to do it with has the path in it.
        Error::ParentMissing(_) => Some("create it first".into()),
        _ => error.hint().map(|hint| in_a_package(&hint)),
    }
}

/// The operating system's number for it: its own, or the closest.
pub fn errno(error: &Error) -> Option<i32> {
    error.errno().or_else(|| sys::closest(error))
}

/// A stable word for each kind of error.
pub fn code(error: &Error) -> &'static str {
    match error {
        // Of the files that are written many at a time: the directory that one should be in.
        Error::Io { operation: "enter the directory", source, .. } if source.kind() == ErrorKind::NotFound => {
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
        Error::Interrupted => "ERR_CALVE_ABORTED",
        _ => "ERR_CALVE_OTHER",
    }
}

/// The same words for what the system says, where there is one.
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

/// What the error is about, where it is about one path.
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
        let missing = error(&Error::Missing("a".into()));
        assert_eq!((missing["code"].as_str(), missing["path"].as_str()), (Some("ERR_CALVE_MISSING"), Some("a")));
        assert!(missing["errno"].is_number() && missing["hint"].is_string());
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
            let error = Error::Io { operation: "move to the trash", path: "a".into(), source: kind.into() };
            assert_eq!(code(&error), expected);
        }
    }
}
