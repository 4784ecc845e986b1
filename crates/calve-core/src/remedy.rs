//! Remedies against errors and refusals: names, which the program and each package put into words for their users.

use std::path::PathBuf;

use strum::{IntoStaticStr, VariantNames};

/// The user's next step.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Remedy {
    /// Name the directory itself instead of `/`, `.` or `..`, from outside of it.
    NameDirectoryFromOutside,
    /// Name a destination that does not exist yet, or permit that the one that exists is replaced and deleted.
    ChooseAnotherDestinationOrReplace,
    ChooseAnotherDestination,
    CheckSpelling,
    CreateDirectory(PathBuf),
    CloneOutsideSource,
    MoveSourceOut,
    /// Clone a directory, a regular file, a symlink or a FIFO.
    CloneAnotherKind,
    /// Free space, or clone where data can be shared.
    FreeSpaceOrShare,
    /// Keep the source still, on a file system that tells whether it changed; or drop the requirement.
    KeepSourceStill,
    /// Ask the probe what would meet the requirement, or drop it.
    ProbeOrDropRequirement,
    /// Nothing but removing the entries of the root directory one by one.
    NameEntriesOfRoot,
    Unmount(PathBuf),
    /// Leave the directory: change to another one.
    LeaveDirectory,
    /// Name a directory that does not contain the protected one.
    NameUnprotected,
    /// Remove this, the symlink itself, by leaving the slash out.
    DropSlash(PathBuf),
    /// Remove this old tree, then clone.
    RemoveOldTree(PathBuf),
    /// Try again while no program writes to the source.
    RetryWhileIdle,
    /// Keep the files on a file system that shares extents.
    MoveToSharingFileSystem,
    /// Write a valid pattern.
    CorrectPattern,
    /// Give paths relative to the root that lead through no symlink.
    GiveRelativePaths,
    NameRegularFile,
    /// Keep spares of this directory ready.
    KeepSpares(PathBuf),
    CloneWithoutSpare,
    /// Have the system let users have namespaces.
    AllowNamespaces,
    /// Keep the changes on a file system that an overlay can write to, outside of the directory.
    KeepChangesElsewhere,
    /// Merge what the command left with the directory by hand.
    MergeChanges,
    EndLeftProcesses,
    /// Put back by hand what was moved to this directory.
    PutBack(PathBuf),
    CheckCommand,
    /// Try again, and keep other programs from cleaning the destination's parent directory.
    RetryWithoutCleaner,
    /// Choose a name of letters, digits, `-`, `_` and `.`.
    ChooseTemplateName,
    /// Set CALVE_HOME to an absolute path.
    SetHome,
    ListTemplates,
    /// Refresh the template of this name, or remove it first.
    RefreshOrRemoveTemplate(String),
    /// Refresh the template of this name.
    RefreshTemplate(String),
    /// Remove a template whose record cannot be read, and create it again.
    RemoveTemplate(String),
    VerifyTemplate(String),
    /// Keep the template in a directory outside of its source.
    KeepTemplateElsewhere,
    /// Leave the entry out of the template, or remove what it has that cannot travel.
    LeaveOutOfTemplate,
    /// Receive it on a file system that keeps everything, or have it sent anew.
    SendTemplateAgain,
    NameDirectory,

    /// Gain write permission on the parent directory.
    AllowDeleting,
    /// Run as the owner, or clear the immutable attribute.
    RunAsOwnerOrClearImmutable,
    /// Have the owner of this, or root, delete it.
    DeleteAsRoot(PathBuf),
    AllowReading,
    /// Check the owner and mode of the parent directory.
    CheckPermissions,
    /// Check the disk: the clone is in place, but may not survive a power failure.
    CheckDiskAfterClone,
    /// Free space or inodes. What was staged has been removed.
    FreeSpace,
    /// Free space or inodes. Files that were complete stay.
    FreeSpaceForRest,
    /// Empty a large file: deleting needs a little space too.
    FreeSpaceToDelete,
    /// Free quota. What was staged has been removed.
    FreeQuota,
    /// Free quota. Files that were complete stay.
    FreeQuotaForRest,
    /// Permit overwriting, or give another path.
    OverwriteOrChooseAnotherPath,
    /// Choose a file system that is not mounted read-only.
    ChooseWritableFileSystem,
    /// Raise the limit of open files, or use fewer threads.
    RaiseOpenFiles,
    /// End programs, or raise the system's limit of open files.
    RaiseSystemOpenFiles,
    /// Free memory, or use fewer threads.
    FreeMemory,
    /// Try again when another program has let go of its lease.
    WaitForLease,
    /// Raise the limit of processes, or use fewer threads.
    RaiseProcesses,
    /// Look for a failure of the device.
    CheckDevice,
    ShortenName,
    /// Rename it, or clone to another file system.
    RenameForFileSystem,
    /// Clone to a file system that allows larger files.
    ChooseFileSystemForLargeFiles,
    /// Check the path: it needs a directory where there is none.
    CheckPathForFile,
    /// Check the path: it needs a file where there is a directory.
    CheckPathForDirectory,
    /// Check the path: a symlink is in the way.
    CheckPathForSymlink,
    /// Make the directory first, or ask for missing ones to be made.
    MakeMissingDirectory,
    /// Stop the program that removes it.
    StopRemovals,
    /// Stop the program that makes files there.
    StopWrites,
    /// End the program or the mount that uses it.
    EndUse,
    /// Mount the file system again.
    MountAgain,
    /// Ask the probe what this file system can do.
    ProbeFileSystem,
    TryAgain,
    /// Look at the system's log.
    CheckLog,

    /// Keep source and destination on one file system that shares extents.
    ShareOneFileSystem,
    /// Clone to a place on the source's file system.
    StayOnFileSystem,
    /// Keep the source in a btrfs subvolume.
    KeepInSubvolume,
    /// Create a btrfs subvolume, and clone the source into it.
    CloneIntoSubvolume,
    RunAsOwner,
}

impl Remedy {
    /// The names of all remedies.
    pub const NAMES: &[&str] = Self::VARIANTS;

    /// Returns the stable name, for programs.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}
