//! Names and numbers of the system's errors.

use std::io::ErrorKind;

use calve_core::{Error, TemplateError};
use rustix::io::Errno;

/// Returns the name of an error number ("EXDEV"). Of two names for one number, it is the one that the kernel's manual pages prefer.
pub(crate) fn error_name(errno: i32) -> String {
    let known = NAMES.iter().find(|(number, _)| number.raw_os_error() == errno);
    known.map_or_else(|| format!("errno {errno}"), |(_, name)| (*name).to_owned())
}

/// Those that calls on files can end with.
const NAMES: &[(Errno, &str)] = &[
    (Errno::PERM, "EPERM"),
    (Errno::NOENT, "ENOENT"),
    (Errno::INTR, "EINTR"),
    (Errno::IO, "EIO"),
    (Errno::NXIO, "ENXIO"),
    (Errno::TOOBIG, "E2BIG"),
    (Errno::BADF, "EBADF"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::ACCESS, "EACCES"),
    (Errno::BUSY, "EBUSY"),
    (Errno::EXIST, "EEXIST"),
    (Errno::XDEV, "EXDEV"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::NFILE, "ENFILE"),
    (Errno::MFILE, "EMFILE"),
    (Errno::NOTTY, "ENOTTY"),
    (Errno::TXTBSY, "ETXTBSY"),
    (Errno::FBIG, "EFBIG"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::SPIPE, "ESPIPE"),
    (Errno::ROFS, "EROFS"),
    (Errno::MLINK, "EMLINK"),
    (Errno::RANGE, "ERANGE"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::NOTEMPTY, "ENOTEMPTY"),
    (Errno::LOOP, "ELOOP"),
    (Errno::OVERFLOW, "EOVERFLOW"),
    (Errno::ILSEQ, "EILSEQ"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::NOTSUP, "ENOTSUP"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::STALE, "ESTALE"),
    (Errno::DQUOT, "EDQUOT"),
    (Errno::CANCELED, "ECANCELED"),
];

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
            TemplateError::Unknown(_) | TemplateError::Gone { .. } => Errno::NOENT,
            TemplateError::Exists(_) => Errno::EXIST,
            TemplateError::NotADirectory(_) => Errno::NOTDIR,
            TemplateError::NotOwn(_) => Errno::PERM,
            TemplateError::Changed { .. } | TemplateError::Damaged { .. } => Errno::IO,
            TemplateError::Superseded(_) => Errno::STALE,
            _ => Errno::INVAL,
        },
        Error::Interrupted => Errno::CANCELED,
        Error::Io { source, .. } if source.kind() == ErrorKind::IsADirectory => Errno::ISDIR,
        Error::Io { .. } => return None,
        _ => Errno::INVAL,
    };
    Some(errno.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_number_is_always_text() {
        assert_eq!(error_name(Errno::XDEV.raw_os_error()), "EXDEV");
        assert_eq!(error_name(Errno::OPNOTSUPP.raw_os_error()), "EOPNOTSUPP");
        assert_eq!(error_name(9999), "errno 9999");
    }
}
