//! Operations that can fail.

use std::fmt;

/// Operations for which the same remedies help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Open,
    Enter,
    Read,
    Delete,
    /// A file of many, whose neighbours stay when it fails.
    WriteFile,
    /// The one step that comes after publishing.
    SyncName,
    Other,
}

macro_rules! operations {
    ($($variant:ident, $kind:ident, $text:literal;)*) => {
        /// An operation that failed. Displayed, it is a verb phrase that a path follows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum Operation { $($variant,)* }

        impl Operation {
            pub(crate) fn kind(self) -> Kind {
                match self { $(Self::$variant => Kind::$kind,)* }
            }
        }

        impl fmt::Display for Operation {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $text,)* })
            }
        }
    };
}

operations! {
    ChangeOwner, Other, "change the owner of";
    Clone, Other, "clone";
    CloneDirectory, Other, "clone directory";
    CloneFile, WriteFile, "clone the file";
    Compare, Read, "compare";
    Copy, Other, "copy";
    CopyOnServer, Other, "copy on the server to";
    CopyStream, Other, "copy a stream of";
    Create, Other, "create";
    CreateDirectory, Other, "create directory";
    CreateFile, WriteFile, "create the file";
    CreateLink, Other, "create link";
    CreateSpecialFile, Other, "create special file";
    CreateStaging, Other, "create a staging directory in";
    CreateStagingFor, Other, "create a staging directory for";
    CreateSubvolume, Other, "create a subvolume in";
    CreateSymlink, Other, "create symlink";
    CreateUpper, Other, "create a directory for changes in";
    DeleteContents, Delete, "delete what is in";
    EmptyFile, WriteFile, "empty the file";
    EnterDirectory, Enter, "enter the directory";
    ExchangeBack, Other, "exchange back";
    Find, Read, "find";
    FindData, Read, "find data in";
    FindHoles, Read, "find holes in";
    FindMounts, Read, "find out what is mounted at";
    FindVolume, Read, "find out what contains";
    FinishStagedTree, Other, "finish the staged tree in";
    ListStreams, Other, "list the streams of";
    LockSpares, Other, "lock the spares in";
    Listen, Other, "listen at";
    LockTemplates, Other, "lock the templates in";
    LookAtVolume, Other, "look at the volume of";
    LookForMounts, Other, "look for mounts below";
    MountOverlay, Other, "mount an overlay at";
    MountOverlayOf, Other, "mount an overlay of";
    MoveSpare, Other, "move the spare";
    MoveToTrash, Delete, "move to the trash";
    Open, Open, "open";
    OpenDirectory, Read, "open directory";
    OpenStagedTree, Read, "open the staged tree in";
    OpenToWrite, WriteFile, "open to write the file";
    Publish, Other, "rename the finished clone to";
    Read, Read, "read";
    ReadDirectory, Read, "read directory";
    ReadExtents, Read, "read the extents of the file system of";
    ReadLink, Read, "read link";
    ReadPermissions, Read, "read the permissions of";
    ReadTemporary, Read, "read a temporary file in";
    ReadXattrs, Read, "read extended attributes of";
    Remove, Delete, "remove";
    RemoveDirectory, Delete, "remove directory";
    RemoveReplaced, Delete, "remove what was replaced at";
    ReplaceEmptyDirectory, Other, "replace the empty directory";
    SetAside, Other, "move the changes to";
    SetFileMode, WriteFile, "set the mode of the file";
    SetMode, Other, "set the mode of";
    SetSize, Other, "set the size of";
    SetStagedMode, Other, "set the mode of the staged tree of";
    SetTimes, Other, "set the times of";
    SetXattrs, Other, "set extended attributes of";
    ShareExtents, Other, "share extents with";
    SkipMount, Other, "leave alone what is mounted at";
    Snapshot, Other, "snapshot";
    SnapshotNested, Other, "snapshot the nested subvolume";
    StartThread, Other, "start a thread to work in";
    Stat, Other, "stat";
    Sync, Other, "sync";
    SyncFile, WriteFile, "sync the file";
    SyncName, SyncName, "sync the directory of";
    TellTime, Other, "tell the time in a staging directory for";
    Unmount, Other, "unmount";
    Watch, Other, "watch";
    Write, Other, "write";
    WriteBack, Other, "write back the changes of";
    WriteFile, WriteFile, "write the file";
    WriteRecord, Other, "write the record";
    WriteTemporary, Other, "write a temporary file in";
}
