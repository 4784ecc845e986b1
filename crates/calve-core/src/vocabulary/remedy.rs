//! Remedies for errors and refusals. The program has its own words for those that one of its commands offers.

use std::path::PathBuf;

use strum::IntoStaticStr;

use crate::vocabulary::shell::word;

/// The user's next step. It converts into its stable name, for programs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, IntoStaticStr, serde::Serialize, serde::Deserialize)]
#[strum(serialize_all = "snake_case")]
pub enum Remedy {
    #[error("name the directory itself, from outside of it: `/`, `.` and `..` cannot be replaced or removed")]
    NameDirectoryFromOutside,
    #[error("name another destination; `replace` swaps the clone in and deletes what is there now")]
    ChooseAnotherDestinationOrReplace,
    #[error("name another destination")]
    ChooseAnotherDestination,
    #[error("check the spelling of the path")]
    CheckSpelling,
    #[error("create it first: mkdir -p {}", word(.0))]
    CreateDirectory(PathBuf),
    #[error("clone to a place outside the source, for example beside it")]
    CloneOutsideSource,
    #[error("move the source out of the destination first")]
    MoveSourceOut,
    #[error("clone a directory, a regular file, a symlink or a FIFO")]
    CloneAnotherKind,
    #[error("free some space, or clone within one file system that shares data (`probe(src, dst)` tells)")]
    FreeSpaceOrShare(PathBuf),
    #[error("try again while nothing writes to the source, which has to be on ext4, XFS or btrfs; or drop `require`")]
    KeepSourceStill,
    #[error("call `probe(src, dst)` to see what would make it possible, or leave out the requirement")]
    ProbeOrDropRequirement,
    #[error("name the directories in it that you want to remove")]
    NameEntriesOfRoot,
    #[error("unmount it first: umount {}", word(.0))]
    Unmount(PathBuf),
    #[error("change to another directory first")]
    LeaveDirectory,
    #[error("name the directories in it that you want to remove, one by one")]
    NameUnprotected,
    #[error("leave out the slash to remove the symlink itself")]
    DropSlash,
    #[error("remove the old one first")]
    RemoveOldTree,
    #[error("nothing was published; if programs were writing to the source, try again while it is idle")]
    RetryWhileIdle,
    #[error("keep them on btrfs, or on XFS made with reflink=1 (the default)")]
    MoveToSharingFileSystem,
    #[error("write a glob such as `*.log`, `/build` or `**/cache/`")]
    CorrectPattern,
    #[error("give paths relative to the root, without `..`, that lead through no symlink")]
    GiveRelativePaths,
    #[error("name a regular file, or remove what is there first")]
    NameRegularFile,
    #[error("keep clones of it ready, which are handed over in milliseconds")]
    KeepSpares(PathBuf),
    #[error("clone it without a spare")]
    CloneWithoutSpare,
    #[error(
        "allow them by sysctl: kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), user.max_user_namespaces and user.max_mnt_namespaces above 0; a container needs CAP_SYS_ADMIN"
    )]
    AllowNamespaces,
    #[error(
        "set CALVE_HOME to a directory on ext4, XFS, btrfs or tmpfs, outside of the directory that the command runs in"
    )]
    KeepChangesElsewhere,
    #[error("merge the kept copy into the directory by hand, or run the command again")]
    MergeChanges,
    #[error(
        "end the processes that the command left running; then merge the kept copy by hand, or run the command again"
    )]
    EndLeftProcesses,
    #[error("put back by hand what is in {}, then remove that directory", word(.0))]
    PutBack(PathBuf),
    #[error("check the name of the command")]
    CheckCommand,
    #[error("run it again, and keep other programs from cleaning the destination's parent directory")]
    RetryWithoutCleaner,
    #[error("choose a name such as `shop` or `node-22`; write ./@NAME for a path that begins with @")]
    ChooseTemplateName,
    #[error("set CALVE_HOME to an absolute path")]
    SetHome,
    #[error("check its name; write ./@NAME for a path that begins with @")]
    ListTemplates,
    #[error("refresh the template, or remove it first")]
    RefreshOrRemoveTemplate(String),
    #[error("refresh the template")]
    RefreshTemplate(String),
    #[error("mount that file system again; if it is gone for good, delete its record")]
    MountPlace { mount_point: PathBuf, record: PathBuf },
    #[error("remove the template, and create it again")]
    RemoveTemplate(String),
    #[error("verify the template to see what differs, or refresh it")]
    VerifyTemplate(String),
    #[error("name a directory outside of the source to keep it in")]
    KeepTemplateElsewhere,
    #[error("leave it out, or clear that bit or attribute in the source and refresh")]
    LeaveOutOfTemplate,
    #[error("pull to a file system that keeps modes, times and extended attributes, or push the template again")]
    SendTemplateAgain,
    #[error("name a directory")]
    NameDirectory,

    #[error("you need write permission on the directory that it is in: fix its mode (chmod u+w), or run as its owner")]
    AllowDeleting,
    #[error("run as its owner; if you are, it may be marked as immutable (lsattr, chattr -i)")]
    RunAsOwnerOrClearImmutable,
    #[error("another user owns it: delete it as that user, or as root")]
    DeleteAsRoot,
    #[error("make it readable, and its parent directories searchable (chmod u+rX), or run as its owner")]
    AllowReading,
    #[error("check the owner and mode of the path and of its directory (ls -ld), or run as its owner")]
    CheckPermissions,
    #[error("the clone is in place and complete, but may not survive a power failure: check the disk (dmesg)")]
    CheckDiskAfterClone,
    #[error("free space or inodes there (df, df -i); what was staged has been removed")]
    FreeSpace,
    #[error("free space or inodes there (df, df -i); files that were complete stay")]
    FreeSpaceForRest,
    #[error("deleting needs a little space too: empty a large file there (truncate -s 0 FILE; sync), then try again")]
    FreeSpaceToDelete,
    #[error("your disk quota is used up (quota): delete files of yours; what was staged has been removed")]
    FreeQuota,
    #[error("your disk quota is used up (quota): delete files of yours; complete files stay")]
    FreeQuotaForRest,
    #[error("it already exists: allow overwriting, or give another path")]
    OverwriteOrChooseAnotherPath,
    #[error("that file system is mounted read-only: choose another place")]
    ChooseWritableFileSystem,
    #[error("raise the limit of open files (ulimit -n 4096)")]
    RaiseOpenFiles,
    #[error(
        "the system has too many open files: end some programs, or raise the limit (sysctl fs.file-max, on macOS kern.maxfiles)"
    )]
    RaiseSystemOpenFiles,
    #[error("free some memory")]
    FreeMemory,
    #[error("another program holds a lease on it: try again when it has released it")]
    WaitForLease,
    #[error("raise the limit of processes (ulimit -u)")]
    RaiseProcesses,
    #[error("the device or file system reported a failure; look at the kernel's log (dmesg)")]
    CheckDevice,
    #[error("the name is too long for the destination's file system: rename it")]
    ShortenName,
    #[error("the destination's file system cannot store that name: rename it, or clone to another file system")]
    RenameForFileSystem,
    #[error("the file is too large for the destination's file system: clone to another one")]
    ChooseFileSystemForLargeFiles,
    #[error("a part of the path is a file or a dangling symlink, not a directory; check the path")]
    CheckPathForFile,
    #[error("the path names a directory, but a file is needed; check the path")]
    CheckPathForDirectory,
    #[error("the path goes through an unexpected symlink, or a loop of symlinks; check the path")]
    CheckPathForSymlink,
    #[error("make that directory first, or ask for missing ones to be made")]
    MakeMissingDirectory,
    #[error("it disappeared meanwhile: stop the program that removes it, then try again")]
    StopRemovals,
    #[error("stop the program that makes files there, then try again")]
    StopWrites,
    #[error("it is in use, or something is mounted on it (see findmnt): end that, then try again")]
    EndUse,
    #[error("the server or program behind this file system does not answer: mount it again, then try again")]
    MountAgain,
    #[error("this file system cannot do that; `probe(src, dst)` shows what it can do")]
    ProbeFileSystem,
    #[error("try again")]
    TryAgain,
    #[error("look at the kernel's log (dmesg) and at what is mounted there (findmnt), then try again")]
    CheckLog,

    #[error("keep both on btrfs, XFS, bcachefs or another file system with reflinks")]
    ShareOneFileSystem,
    #[error("clone to a place on the source's file system")]
    StayOnFileSystem,
    #[error("keep the source in a btrfs subvolume")]
    KeepInSubvolume,
    #[error("create a btrfs subvolume (btrfs subvolume create), and clone the source into it")]
    CloneIntoSubvolume,
    #[error("run as its owner")]
    RunAsOwner,
}
