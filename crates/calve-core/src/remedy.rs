//! What helps against an error or a refusal: names, which the program and each package put into words for their users.

use std::path::PathBuf;

macro_rules! remedies {
    ($($(#[$doc:meta])* $variant:ident $(($payload:ty))? = $name:literal,)*) => {
        /// What the user can do next.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[non_exhaustive]
        pub enum Remedy { $($(#[$doc])* $variant $(($payload))?,)* }

        impl Remedy {
            /// The names of all remedies.
            pub const NAMES: &[&str] = &[$($name),*];

            /// Returns the stable name, for programs.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $name,)* }
            }
        }
    };
}

remedies! {
    /// Name the directory itself instead of `/`, `.` or `..`, from outside of it.
    NameDirectoryFromOutside = "name_directory_from_outside",
    /// Name a destination that does not exist yet, or permit that the one that exists is replaced and deleted.
    ChooseAnotherDestinationOrReplace = "choose_another_destination_or_replace",
    /// Name another destination.
    ChooseAnotherDestination = "choose_another_destination",
    /// Check the spelling of the path.
    CheckSpelling = "check_spelling",
    /// Create this directory.
    CreateDirectory(PathBuf) = "create_directory",
    /// Clone to a place outside the source.
    CloneOutsideSource = "clone_outside_source",
    /// Move the source out of the destination.
    MoveSourceOut = "move_source_out",
    /// Clone a directory, a regular file, a symlink or a FIFO.
    CloneAnotherKind = "clone_another_kind",
    /// Free space, or clone where data can be shared.
    FreeSpaceOrShare = "free_space_or_share",
    /// Keep the source still, on a file system that tells whether it changed; or drop the requirement.
    KeepSourceStill = "keep_source_still",
    /// Ask the probe what would meet the requirement, or drop it.
    ProbeOrDropRequirement = "probe_or_drop_requirement",
    /// Nothing but removing the entries of the root directory one by one.
    NameEntriesOfRoot = "name_entries_of_root",
    /// Unmount this.
    Unmount(PathBuf) = "unmount",
    /// Leave the directory: change to another one.
    LeaveDirectory = "leave_directory",
    /// Name a directory that does not contain the protected one.
    NameUnprotected = "name_unprotected",
    /// Remove this, the symlink itself, by leaving the slash out.
    DropSlash(PathBuf) = "drop_slash",
    /// Remove this old tree, then clone.
    RemoveOldTree(PathBuf) = "remove_old_tree",
    /// Try again while no program writes to the source.
    RetryWhileIdle = "retry_while_idle",
    /// Keep the files on a file system that shares extents.
    MoveToSharingFileSystem = "move_to_sharing_file_system",
    /// Write a valid pattern.
    CorrectPattern = "correct_pattern",
    /// Give paths relative to the root that lead through no symlink.
    GiveRelativePaths = "give_relative_paths",
    /// Name a regular file.
    NameRegularFile = "name_regular_file",
    /// Keep spares of this directory ready.
    KeepSpares(PathBuf) = "keep_spares",
    /// Clone it without a spare.
    CloneWithoutSpare = "clone_without_spare",
    /// Have the system let users have namespaces.
    AllowNamespaces = "allow_namespaces",
    /// Keep the changes on a file system that an overlay can write to, outside of the directory.
    KeepChangesElsewhere = "keep_changes_elsewhere",
    /// Merge what the command left with the directory by hand.
    MergeChanges = "merge_changes",
    /// Put back by hand what was moved to this directory.
    PutBack(PathBuf) = "put_back",
    /// Check the name of the command.
    CheckCommand = "check_command",
    /// Try again, and keep other programs from cleaning the destination's parent directory.
    RetryWithoutCleaner = "retry_without_cleaner",
    /// Choose a name of letters, digits, `-`, `_` and `.`.
    ChooseTemplateName = "choose_template_name",
    /// Set CALVE_HOME to an absolute path.
    SetHome = "set_home",
    /// See which templates there are.
    ListTemplates = "list_templates",
    /// Refresh the template of this name, or remove it first.
    RefreshOrRemoveTemplate(String) = "refresh_or_remove_template",
    /// Refresh the template of this name.
    RefreshTemplate(String) = "refresh_template",
    /// Remove a template whose record cannot be read, and create it again.
    RemoveTemplate(String) = "remove_template",
    /// Verify the template of this name.
    VerifyTemplate(String) = "verify_template",
    /// Keep the template in a directory outside of its source.
    KeepTemplateElsewhere = "keep_template_elsewhere",
    /// Leave the entry out of the template, or remove what it has that cannot travel.
    LeaveOutOfTemplate = "leave_out_of_template",
    /// Receive it on a file system that keeps everything, or have it sent anew.
    SendTemplateAgain = "send_template_again",
    /// Name a directory.
    NameDirectory = "name_directory",

    /// Gain write permission on the parent directory.
    AllowDeleting = "allow_deleting",
    /// Run as the owner, or clear the immutable attribute.
    RunAsOwnerOrClearImmutable = "run_as_owner_or_clear_immutable",
    /// Have the owner of this, or root, delete it.
    DeleteAsRoot(PathBuf) = "delete_as_root",
    /// Make it readable.
    AllowReading = "allow_reading",
    /// Check the owner and mode of the parent directory.
    CheckPermissions = "check_permissions",
    /// Check the disk: the clone is in place, but may not survive a power failure.
    CheckDiskAfterClone = "check_disk_after_clone",
    /// Free space or inodes. What was staged has been removed.
    FreeSpace = "free_space",
    /// Free space or inodes. Files that were complete stay.
    FreeSpaceForRest = "free_space_for_rest",
    /// Empty a large file: deleting needs a little space too.
    FreeSpaceToDelete = "free_space_to_delete",
    /// Free quota. What was staged has been removed.
    FreeQuota = "free_quota",
    /// Free quota. Files that were complete stay.
    FreeQuotaForRest = "free_quota_for_rest",
    /// Permit overwriting, or give another path.
    OverwriteOrChooseAnotherPath = "overwrite_or_choose_another_path",
    /// Choose a file system that is not mounted read-only.
    ChooseWritableFileSystem = "choose_writable_file_system",
    /// Raise the limit of open files, or use fewer threads.
    RaiseOpenFiles = "raise_open_files",
    /// End programs, or raise the system's limit of open files.
    RaiseSystemOpenFiles = "raise_system_open_files",
    /// Free memory, or use fewer threads.
    FreeMemory = "free_memory",
    /// Try again when another program has let go of its lease.
    WaitForLease = "wait_for_lease",
    /// Raise the limit of processes, or use fewer threads.
    RaiseProcesses = "raise_processes",
    /// Look for a failure of the device.
    CheckDevice = "check_device",
    /// Shorten the name.
    ShortenName = "shorten_name",
    /// Rename it, or clone to another file system.
    RenameForFileSystem = "rename_for_file_system",
    /// Clone to a file system that allows larger files.
    ChooseFileSystemForLargeFiles = "choose_file_system_for_large_files",
    /// Check the path: it needs a directory where there is none.
    CheckPathForFile = "check_path_for_file",
    /// Check the path: it needs a file where there is a directory.
    CheckPathForDirectory = "check_path_for_directory",
    /// Check the path: a symlink is in the way.
    CheckPathForSymlink = "check_path_for_symlink",
    /// Make the directory first, or ask for missing ones to be made.
    MakeMissingDirectory = "make_missing_directory",
    /// Stop the program that removes it.
    StopRemovals = "stop_removals",
    /// Stop the program that makes files there.
    StopWrites = "stop_writes",
    /// End the program or the mount that uses it.
    EndUse = "end_use",
    /// Mount the file system again.
    MountAgain = "mount_again",
    /// Ask the probe what this file system can do.
    ProbeFileSystem = "probe_file_system",
    /// Try again.
    TryAgain = "try_again",
    /// Look at the system's log.
    CheckLog = "check_log",

    /// Close the program that has it open.
    CloseProgram = "close_program",
    /// Close the program that has something in it open, or check the permissions.
    CloseProgramOrCheckPermissions = "close_program_or_check_permissions",
    /// Turn on Developer Mode, or run as an administrator.
    EnableDeveloperMode = "enable_developer_mode",
    /// Clone to a volume that supports encryption, or decrypt the file.
    DecryptFile = "decrypt_file",
    /// Check the volume.
    CheckVolume = "check_volume",
    /// Make the file available offline.
    MakeAvailableOffline = "make_available_offline",

    /// Keep source and destination on one file system that shares extents.
    ShareOneFileSystem = "share_one_file_system",
    /// Clone to a place on the source's file system.
    StayOnFileSystem = "stay_on_file_system",
    /// Keep the source in a btrfs subvolume.
    KeepInSubvolume = "keep_in_subvolume",
    /// Create a btrfs subvolume, and clone the source into it.
    CloneIntoSubvolume = "clone_into_subvolume",
    /// Run as the owner.
    RunAsOwner = "run_as_owner",
    /// Keep both on a Dev Drive or another ReFS volume.
    UseDevDrive = "use_dev_drive",
}
