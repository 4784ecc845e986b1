/// Groups of operations with the same remedies.
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

/// Declares the operations that can fail: an enum whose variants are displayed as verb phrases before a path.
macro_rules! operations {
    ($(#[$attribute:meta])* pub enum $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($variant,)* }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $text,)* })
            }
        }
    };
}

operations! {
    /// An operation that failed. Displayed, it is a verb phrase that a path follows.
    pub enum Operation {
        ChangeOwner = "change the owner of",
        Clone = "clone",
        CloneDirectory = "clone directory",
        CloneFile = "clone the file",
        Compare = "compare",
        Copy = "copy",
        CopyOnServer = "copy on the server to",
        Create = "create",
        CreateDirectory = "create directory",
        CreateFile = "create the file",
        CreateLink = "create link",
        CreateSpecialFile = "create special file",
        CreateStaging = "create a staging directory in",
        CreateStagingFor = "create a staging directory for",
        CreateSubvolume = "create a subvolume in",
        CreateSymlink = "create symlink",
        CreateUpper = "create a directory for changes in",
        DeleteContents = "delete what is in",
        EmptyFile = "empty the file",
        EnterDirectory = "enter the directory",
        ExchangeBack = "exchange back",
        Find = "find",
        FindData = "find data in",
        FindHoles = "find holes in",
        FindMounts = "find out what is mounted at",
        FindVolume = "find out what contains",
        FinishStagedTree = "finish the staged tree in",
        LockSpares = "lock the spares in",
        Listen = "listen at",
        LockTemplates = "lock the templates in",
        LookForMounts = "look for mounts below",
        MountOverlay = "mount an overlay at",
        MountOverlayOf = "mount an overlay of",
        MoveSpare = "move the spare",
        MoveToTrash = "move to the trash",
        Open = "open",
        OpenDirectory = "open directory",
        OpenStagedTree = "open the staged tree in",
        OpenToWrite = "open to write the file",
        Publish = "rename the finished clone to",
        Read = "read",
        ReadDirectory = "read directory",
        ReadExtents = "read the extents of the file system of",
        ReadLink = "read link",
        ReadTemporary = "read a temporary file in",
        ReadXattrs = "read extended attributes of",
        Remove = "remove",
        RemoveDirectory = "remove directory",
        RemoveEmptied = "remove the emptied directory",
        RemoveReplaced = "remove what was replaced at",
        ReplaceEmptyDirectory = "replace the empty directory",
        SetAside = "move the changes to",
        SetFileMode = "set the mode of the file",
        SetMode = "set the mode of",
        SetSize = "set the size of",
        SetStagedMode = "set the mode of the staged tree of",
        SetTimes = "set the times of",
        SetXattrs = "set extended attributes of",
        ShareExtents = "share extents with",
        SkipMount = "leave alone what is mounted at",
        Snapshot = "snapshot",
        SnapshotNested = "snapshot the nested subvolume",
        StartThread = "start a thread to work in",
        Stat = "stat",
        Sync = "sync",
        SyncFile = "sync the file",
        SyncName = "sync the directory of",
        TellTime = "tell the time in a staging directory for",
        Unmount = "unmount",
        Watch = "watch",
        Write = "write",
        WriteBack = "write back the changes of",
        WriteFile = "write the file",
        WriteRecord = "write the record",
        WriteTemporary = "write a temporary file in",
    }
}

impl Operation {
    // Exhaustive, so that a new operation has its kind. One name to a line would be too long.
    #[rustfmt::skip]
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Open => Kind::Open,
            Self::EnterDirectory => Kind::Enter,
            Self::Compare | Self::Find | Self::FindData | Self::FindHoles | Self::FindMounts | Self::FindVolume |
            Self::OpenDirectory | Self::OpenStagedTree | Self::Read | Self::ReadDirectory | Self::ReadExtents |
            Self::ReadLink | Self::ReadTemporary | Self::ReadXattrs => Kind::Read,
            Self::CloneFile | Self::CreateFile | Self::EmptyFile | Self::OpenToWrite | Self::SetFileMode | Self::SyncFile
            | Self::WriteFile => Kind::WriteFile,
            Self::DeleteContents | Self::MoveToTrash | Self::Remove | Self::RemoveDirectory | Self::RemoveEmptied
            | Self::RemoveReplaced =>
                Kind::Delete,
            Self::SyncName => Kind::SyncName,
            Self::ChangeOwner | Self::Clone | Self::CloneDirectory | Self::Copy | Self::CopyOnServer | Self::Create | Self::CreateDirectory | Self::CreateLink | Self::CreateSpecialFile | Self::CreateStaging |
            Self::CreateStagingFor | Self::CreateSubvolume | Self::CreateSymlink | Self::CreateUpper | Self::ExchangeBack
            | Self::FinishStagedTree | Self::LockSpares | Self::Listen | Self::LockTemplates |
            Self::LookForMounts | Self::MountOverlay | Self::MountOverlayOf | Self::MoveSpare |
            Self::Publish | Self::ReplaceEmptyDirectory | Self::SetAside | Self::SetMode | Self::SetSize |
            Self::SetStagedMode | Self::SetTimes | Self::SetXattrs | Self::ShareExtents | Self::SkipMount | Self::Snapshot
            | Self::SnapshotNested | Self::StartThread | Self::Stat | Self::Sync | Self::TellTime | Self::Unmount |
            Self::Watch | Self::Write | Self::WriteBack | Self::WriteRecord | Self::WriteTemporary => Kind::Other,
        }
    }
}
