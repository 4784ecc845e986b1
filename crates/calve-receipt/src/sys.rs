//! Numbers of the system's errors.

use std::io::ErrorKind;

use calve_core::Error;
use calve_core::error::TemplateError;
use rustix::io::Errno;

/// Returns the number of the system that says the same as an error that has none.
pub(crate) fn closest(error: &Error) -> Option<i32> {
    let errno = match error {
        Error::DestinationExists(_) => Errno::EXIST,
        Error::Missing(_) | Error::ParentMissing(_) => Errno::NOENT,
        Error::NoRoom { .. } => Errno::NOSPC,
        Error::LinkWithSlash(_) => Errno::NOTDIR,
        Error::Protected { .. } => Errno::PERM,
        Error::RequirementRefused { .. } | Error::ReplaceUnsupported(_) => Errno::OPNOTSUPP,
        Error::VerifyFailed { .. } => Errno::IO,
        Error::StagingLost(_) => Errno::STALE,
        Error::Template(error) => match error {
            TemplateError::Unknown(_) | TemplateError::Gone { .. } | TemplateError::NotMounted { .. } => Errno::NOENT,
            TemplateError::Exists(_) => Errno::EXIST,
            TemplateError::NotADirectory(_) => Errno::NOTDIR,
            TemplateError::NotOwn(_) => Errno::PERM,
            TemplateError::Changed { .. } | TemplateError::Damaged { .. } => Errno::IO,
            TemplateError::Superseded(_) => Errno::STALE,
            _ => Errno::INVAL,
        },
        Error::Interrupted => Errno::CANCELED,
        Error::Io { source, .. } => return of_kind(source.kind()),
        _ => Errno::INVAL,
    };
    Some(errno.raw_os_error())
}

/// Returns the number that fits a kind of error best, for one that has none: fs-err adds a path to errors, and hides their numbers.
pub(crate) fn of_kind(kind: ErrorKind) -> Option<i32> {
    let errno = match kind {
        ErrorKind::NotFound => Errno::NOENT,
        ErrorKind::AlreadyExists => Errno::EXIST,
        ErrorKind::PermissionDenied => Errno::ACCESS,
        ErrorKind::ReadOnlyFilesystem => Errno::ROFS,
        ErrorKind::NotADirectory => Errno::NOTDIR,
        ErrorKind::IsADirectory => Errno::ISDIR,
        ErrorKind::StorageFull => Errno::NOSPC,
        ErrorKind::QuotaExceeded => Errno::DQUOT,
        _ => return None,
    };
    Some(errno.raw_os_error())
}
