use std::io;

/// Returns the hint for an I/O error of the program's own, whose message names the path.
pub(crate) fn hint(error: &io::Error) -> &'static str {
    use io::ErrorKind::{
        AlreadyExists, InvalidFilename, IsADirectory, NotADirectory, NotFound, PermissionDenied, QuotaExceeded,
        ReadOnlyFilesystem, StorageFull,
    };
    match error.kind() {
        NotFound => "check the spelling; the parent directories must exist",
        NotADirectory | IsADirectory | InvalidFilename => {
            "check the path: it names a file where a directory is needed, or vice versa"
        }
        PermissionDenied => "check the owner and mode of what is named, and of the directory that it is in",
        ReadOnlyFilesystem => "that file system is mounted read-only: name a writable place",
        StorageFull => "free some space there, or name another place",
        QuotaExceeded => "your disk quota is used up: free some space there, or name another place",
        AlreadyExists => "remove what is there, or name another place",
        // Mostly too many files, processes or threads.
        _ => "check the limits of your session (ulimit -a) and the kernel's log (dmesg), then try again",
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    #[test]
    fn the_hint_is_about_what_went_wrong() {
        let hint = |kind: io::ErrorKind| super::hint(&kind.into());
        assert!(hint(io::ErrorKind::NotFound).contains("spelling"));
        assert!(hint(io::ErrorKind::StorageFull).contains("free some space"));
        assert!(hint(io::ErrorKind::PermissionDenied).contains("owner and mode"));
        assert!(hint(io::ErrorKind::ReadOnlyFilesystem).contains("read-only"));
        // EMFILE, which has no kind of its own.
        assert!(hint(io::ErrorKind::Other).contains("ulimit"));
    }
}
