//! Errors, as the packages for other languages hand them over.

use calve_core::Error;
use serde_json::{Value, json};

use crate::{path, refusals, sys};

/// The part of a clone's or removal's error that programs go by: `{code, message, errno, errno_name, path, operation, hint, refused}`.
pub fn error(error: &Error) -> Value {
    let number = errno(error);
    json!({
        "code": code(error),
        "message": error.to_string(),
        "errno": number,
        "errno_name": number.map(sys::error_name),
        "path": error_path(error).map(path),
        "operation": if let Error::Io { operation, .. } = error { Some(operation) } else { None },
        "hint": error.hint(),
        "refused": if let Error::RequirementRefused { refused, .. } = error { Some(refusals(refused)) } else { None },
    })
}

/// The operating system's number for it: its own, or the closest.
pub fn errno(error: &Error) -> Option<i32> {
    error.errno().or_else(|| sys::closest(error))
}

/// A stable word for each kind of error.
pub fn code(error: &Error) -> &'static str {
    match error {
        Error::Io { .. } | Error::LinkWithSlash(_) => "ERR_CALVE_IO",
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
}
