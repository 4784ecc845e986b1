//! What helps against an error of the system.

use std::io;

use rustix::io::Errno;

use crate::error::SYNC_NAME;

/// The command that makes a directory and those above it.
pub(crate) const MAKE_DIRECTORY: &str = "mkdir -p";

/// Going into a directory that a caller wants files in.
pub(crate) const ENTER: &str = "enter the directory";

/// What helps, by what was being done.
pub(crate) fn hint(source: &io::Error, operation: &str) -> &'static str {
    let deleting = ["remove", "delete", "move to the trash"].iter().any(|verb| operation.starts_with(verb));
    let reading = ["read", "open", "enter", "find", "compare"].iter().any(|verb| operation.starts_with(verb));
    // Of the small files that are written many at a time.
    let writing = operation.ends_with(" the file");
    let errno = match Errno::from_io_error(source) {
        Some(errno) => errno,
        // The packages' own, of a file that is to be cloned.
        None if source.kind() == io::ErrorKind::IsADirectory => Errno::ISDIR,
        None => return UNKNOWN,
    };
    match errno {
        Errno::ACCESS if deleting => {
            "you need write permission on the directory that it is in: fix its mode, or run as its owner"
        }
        Errno::PERM if deleting => "run as its owner; if you are, it may be marked as immutable (lsattr, chattr -i)",
        Errno::ACCESS | Errno::PERM if reading => {
            "it must be readable, and what is above it searchable: fix the mode, or run as its owner"
        }
        Errno::ACCESS | Errno::PERM => "check the owner and mode of the directory that it is in, or run as its owner",
        _ if operation == SYNC_NAME => "the clone is there and complete, but might not survive a power failure",
        Errno::NOSPC if writing => "free space or inodes on that file system; files that were complete stay",
        Errno::DQUOT if writing => "your disk quota is used up; files that were complete stay",
        Errno::EXIST if writing => "it is there already: permit that it is overwritten, or give another path",
        Errno::NOSPC => "free space or inodes on that file system; what was staged has been removed",
        Errno::DQUOT => "your disk quota is used up; what was staged has been removed",
        Errno::ROFS => "that file system is mounted read-only",
        Errno::MFILE => "raise the limit of open files (ulimit -n), or lower `--threads`",
        Errno::NFILE if cfg!(target_os = "macos") => {
            "all programs together have too many files open: end some, or raise the limit (sysctl kern.maxfiles)"
        }
        Errno::NFILE => {
            "all programs together have too many files open: end some, or raise the limit (sysctl fs.file-max)"
        }
        Errno::NOMEM => "free some memory, or lower `--threads`",
        Errno::AGAIN if operation == "open" => "another program holds a lease on it: try again when it has let go",
        Errno::AGAIN => "raise the limit of processes (ulimit -u), or lower `--threads`",
        Errno::IO | Errno::NXIO | Errno::NODEV => {
            "the device or file system reported a failure; look at the kernel's log (dmesg)"
        }
        Errno::NAMETOOLONG => "the destination's file system allows shorter names only",
        Errno::ILSEQ => {
            "the destination's file system cannot store that name; rename it, or clone to another file system"
        }
        Errno::FBIG => "the destination's file system allows smaller files only; clone to another one",
        Errno::NOTDIR => "a file, or a link to nothing, is where the path needs a directory; check the path",
        Errno::ISDIR => "a directory is where the path needs a file; check the path",
        Errno::LOOP => "a symlink is where the path needs something else, or links lead in a circle; check the path",
        Errno::NOENT if operation == ENTER => "make that directory first, or ask that missing ones are made",
        Errno::NOENT => "it was there and is gone; stop what is removing it, then try again",
        Errno::EXIST | Errno::NOTEMPTY => "another program is making files there; stop it, then try again",
        Errno::BUSY | Errno::TXTBSY => {
            "it is in use, or something is mounted on it (findmnt tells); end that, then try again"
        }
        Errno::STALE | Errno::TIMEDOUT | Errno::NOTCONN | Errno::HOSTDOWN => {
            "the server or program behind this file system does not answer; mount it again, then try again"
        }
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY | Errno::INVAL | Errno::XDEV => {
            "this file system does not do that; `calve probe SRC DST` tells what it does"
        }
        Errno::INTR => "try again",
        _ => UNKNOWN,
    }
}

const UNKNOWN: &str = "look at the kernel's log (dmesg) and at what is mounted there (findmnt), then try again";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn every_error_of_the_system_has_a_hint() {
        for errno in 1..200 {
            let error = Error::io("stat", "a", Errno::from_raw_os_error(errno));
            assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{errno}");
        }
        let hint = |operation| Error::io(operation, "a", Errno::ACCESS).hint().unwrap();
        assert!(hint("open").contains("readable"));
        assert!(hint("remove directory").contains("write permission"));
        assert!(hint("create a staging directory in").contains("owner and mode"));
        let full = |operation| Error::io(operation, "a", Errno::NOSPC).hint().unwrap();
        assert!(Error::io(ENTER, "a", Errno::NOENT).hint().unwrap().contains("make that directory"));
        let directory =
            Error::Io { operation: "clone the file", path: "a".into(), source: io::ErrorKind::IsADirectory.into() };
        assert!(directory.hint().unwrap().contains("needs a file"));
        assert!(full("copy").contains("staged") && full("write the file").contains("stay"));
    }
}
