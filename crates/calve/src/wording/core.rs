//! The remedies of the engine: what to type or change, as one sentence without a full stop.

use calve_core::Remedy;

use super::word;

/// Returns the hint for the program's user.
pub(crate) fn hint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::CreateDirectory(path) => format!("create it first: mkdir -p {}", word(path)),
        Remedy::Unmount(path) => format!("unmount it first: umount {}", word(path)),
        Remedy::RemoveOldTree(path) => format!("remove the old one first: calve rm {}", word(path)),
        Remedy::DropSlash(link) => format!("leave the slash out to remove the symlink itself: calve rm {}", word(link)),
        Remedy::DeleteAsRoot(path) => format!("another user owns it; root may delete it: sudo calve rm {}", word(path)),
        Remedy::RefreshOrRemoveTemplate(name) => {
            format!(
                "make it anew with `calve template refresh {name}`, or remove it with `calve template remove {name}`"
            )
        }
        Remedy::RefreshTemplate(name) => format!("make it anew: calve template refresh {name}"),
        Remedy::RemoveTemplate(name) => format!("remove it, and create it again: calve template remove {name}"),
        Remedy::VerifyTemplate(name) => {
            format!("`calve template verify {name}` tells what differs, `calve template refresh {name}` makes it anew")
        }
        Remedy::KeepSpares(source) => {
            format!("keep clones of it ready, which are handed over in milliseconds: calve spares add {}", word(source))
        }
        Remedy::PutBack(kept) => format!("put back by hand what is in {}, then remove that directory", word(kept)),
        other => {
            let words = of_request(other).or_else(|| of_template(other)).or_else(|| of_system(other));
            words.or_else(|| of_path(other)).or_else(|| of_strategy(other)).unwrap_or(LOOK_AT_LOG).into()
        }
    }
}

const RAISE_SYSTEM_OPEN_FILES: &str = if cfg!(target_os = "macos") {
    "all programs together have too many files open: end some, or raise the limit (sysctl kern.maxfiles)"
} else {
    "all programs together have too many files open: end some, or raise the limit (sysctl fs.file-max)"
};

/// `Remedy` is non-exhaustive: a newer engine may have more.
const LOOK_AT_LOG: &str = "look at the kernel's log (dmesg) and at what is mounted there (findmnt), then try again";

/// Returns the words for remedies that concern what was asked.
fn of_request(remedy: &Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::NameDirectoryFromOutside => {
            "name the directory itself, from outside of it: `/`, `.` and `..` cannot be replaced or removed"
        }
        Remedy::ChooseAnotherDestinationOrReplace => {
            "name another destination; `--replace` swaps the clone in and deletes what is there now"
        }
        Remedy::ChooseAnotherDestination => "name another destination",
        Remedy::CheckSpelling => "check the spelling of the path",
        Remedy::CloneOutsideSource => "clone to a place outside the source, for example beside it",
        Remedy::MoveSourceOut => "move the source out of the destination first",
        Remedy::CloneAnotherKind => "clone a directory, a regular file, a symlink or a FIFO",
        Remedy::FreeSpaceOrShare => {
            "free some space, or clone within one file system that shares data (`calve probe SRC DST` tells)"
        }
        Remedy::KeepSourceStill => {
            "put the source on ext4, XFS or btrfs, and try again while nothing writes to it; or leave out `--require stable`"
        }
        Remedy::ProbeOrDropRequirement => {
            "run `calve probe SRC DST` to see what would make it possible, or leave out the requirement"
        }
        Remedy::NameEntriesOfRoot => "name the directories in it that you want to remove",
        Remedy::LeaveDirectory => "change to another directory first: cd ..",
        Remedy::NameUnprotected => "name the directories in it that you want to remove, one by one",
        Remedy::RetryWhileIdle => {
            "nothing was published; if programs were writing to the source, try again while it is idle"
        }
        Remedy::MoveToSharingFileSystem => {
            "keep them on btrfs, or on XFS made with reflink=1 (the default); `calve cp` to such a place shares from the \
             beginning"
        }
        Remedy::CorrectPattern => "write a glob such as `*.log`, `/build` or `**/cache/`",
        Remedy::GiveRelativePaths => "give paths relative to the root, without `..`, that lead through no symlink",
        Remedy::NameRegularFile => "name a regular file, or remove what is there first",
        Remedy::CloneWithoutSpare => "clone it with `calve cp`, which needs no spare",
        Remedy::AllowNamespaces => {
            "allow them by sysctl: kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), user.max_user_namespaces and \
             user.max_mnt_namespaces above 0; a container needs CAP_SYS_ADMIN"
        }
        Remedy::KeepChangesElsewhere => {
            "set CALVE_HOME to a directory on ext4, XFS, btrfs or tmpfs, outside of the directory that the command runs in"
        }
        Remedy::MergeChanges => "merge the copy that was kept with the directory by hand, or run the command again",
        Remedy::EndLeftProcesses => {
            "end the processes that the command left behind, and merge the copy that was kept by hand, or run the command again"
        }
        Remedy::CheckCommand => "check the name of the command after `--`",
        Remedy::RetryWithoutCleaner => {
            "run it again, and keep other programs from cleaning the destination's parent directory"
        }
        _ => return None,
    })
}

/// Returns the words for remedies that concern templates.
fn of_template(remedy: &Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::ChooseTemplateName => {
            "choose a name such as `shop` or `node-22`; write ./@NAME for a path that begins with @"
        }
        Remedy::SetHome => "set CALVE_HOME to an absolute path",
        Remedy::ListTemplates => {
            "`calve template list` shows the templates; write ./@NAME for a path that begins with @"
        }
        Remedy::LeaveOutOfTemplate => {
            "leave it out with `calve template refresh NAME --exclude GLOB`, or clear that bit or attribute in the source and refresh"
        }
        Remedy::SendTemplateAgain => {
            "pull to a file system that keeps modes, times and extended attributes (`--at`), or push the template again"
        }
        Remedy::KeepTemplateElsewhere => "name a directory outside of it with `--at`, or another source",
        Remedy::NameDirectory => "name a directory",
        _ => return None,
    })
}

/// Returns the words for remedies that concern permissions, room and limits.
fn of_system(remedy: &Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::AllowDeleting => {
            "you need write permission on the directory that it is in: fix its mode (chmod u+w), or run as its owner"
        }
        Remedy::RunAsOwnerOrClearImmutable => {
            "run as its owner; if you are, it may be marked as immutable (lsattr, chattr -i)"
        }
        Remedy::AllowReading => "make it readable, and what is above it searchable (chmod u+rX), or run as its owner",
        Remedy::CheckPermissions => {
            "check the owner and mode of the directory that it is in (ls -ld), or run as its owner"
        }
        Remedy::CheckDiskAfterClone => {
            "the clone is in place and complete, but may not survive a power failure: check the disk (dmesg)"
        }
        Remedy::FreeSpace => "free space or inodes there (df, df -i); what was staged has been removed",
        Remedy::FreeSpaceForRest => "free space or inodes there (df, df -i); files that were complete stay",
        Remedy::FreeSpaceToDelete => {
            "deleting needs a little space too: empty a large file there (truncate -s 0 FILE), then try again"
        }
        Remedy::FreeQuota => {
            "your disk quota is used up (quota): delete files of yours; what was staged has been removed"
        }
        Remedy::FreeQuotaForRest => "your disk quota is used up (quota): delete files of yours; complete files stay",
        Remedy::OverwriteOrChooseAnotherPath => {
            "it exists already: permit that it is overwritten, or give another path"
        }
        Remedy::ChooseWritableFileSystem => "that file system is mounted read-only: choose another place",
        Remedy::RaiseOpenFiles => "raise the limit of open files (ulimit -n 4096)",
        Remedy::RaiseSystemOpenFiles => RAISE_SYSTEM_OPEN_FILES,
        Remedy::FreeMemory => "free some memory",
        Remedy::WaitForLease => "another program holds a lease on it: try again when it has released it",
        Remedy::RaiseProcesses => "raise the limit of processes (ulimit -u)",
        Remedy::CheckDevice => "the device or file system reported a failure; look at the kernel's log (dmesg)",
        _ => return None,
    })
}

/// Returns the words for remedies that concern names, what is at a path, and what uses it.
fn of_path(remedy: &Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::ShortenName => "the destination's file system allows shorter names only: rename it",
        Remedy::RenameForFileSystem => {
            "the destination's file system cannot store that name: rename it, or clone to another file system"
        }
        Remedy::ChooseFileSystemForLargeFiles => {
            "the destination's file system allows smaller files only: clone to another one"
        }
        Remedy::CheckPathForFile => "a file, or a link to nothing, is where the path needs a directory; check the path",
        Remedy::CheckPathForDirectory => "a directory is where the path needs a file; check the path",
        Remedy::CheckPathForSymlink => {
            "a symlink is where the path needs something else, or links lead in a circle; check the path"
        }
        Remedy::MakeMissingDirectory => "make that directory first, or ask for missing ones to be made",
        Remedy::StopRemovals => "it was there and is gone: stop the program that removes it, then try again",
        Remedy::StopWrites => "stop the program that makes files there, then try again",
        Remedy::EndUse => "it is in use, or something is mounted on it (findmnt tells): end that, then try again",
        Remedy::MountAgain => {
            "the server or program behind this file system does not answer: mount it again, then try again"
        }
        Remedy::ProbeFileSystem => "this file system cannot do that; `calve probe SRC DST` shows what it can do",
        Remedy::TryAgain => "try again",
        _ => return None,
    })
}

/// Returns the words for remedies that concern a strategy that is refused.
fn of_strategy(remedy: &Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::ShareOneFileSystem => "keep both on btrfs, XFS, bcachefs or another file system with reflinks",
        Remedy::StayOnFileSystem => "clone to a place on the source's file system",
        Remedy::KeepInSubvolume => "keep the source in a btrfs subvolume",
        Remedy::CloneIntoSubvolume => "create a btrfs subvolume (btrfs subvolume create), and clone the source into it",
        Remedy::RunAsOwner => "run as its owner",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_with_a_path_is_a_command() {
        assert!(hint(&Remedy::CreateDirectory("a b".into())).ends_with("mkdir -p 'a b'"));
        assert_eq!(hint(&Remedy::RemoveOldTree("old".into())), "remove the old one first: calve rm old");
    }
}
