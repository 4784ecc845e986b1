//! Operations that can fail.

calve_core::operations! {
    /// An operation that failed. Displayed, it is a verb phrase that a path follows.
    #[derive(serde::Serialize, serde::Deserialize)]
    pub enum Operation {
        AskForGreeting = "ask for a greeting on",
        ChangeGroup = "change the group of",
        ChangeOwner = "change the owner of",
        Create = "create",
        CreateDirectory = "create directory",
        Empty = "empty",
        Find = "find",
        HoldServer = "hold the server of",
        Link = "link",
        List = "list",
        Listen = "listen on",
        Lock = "lock",
        Mount = "mount",
        Open = "open",
        OpenDirectory = "open directory",
        Read = "read",
        ReadLink = "read the link",
        Remove = "remove",
        Rename = "rename",
        Replace = "replace",
        Run = "run",
        SetMode = "set the mode of",
        ShareLock = "share the lock of",
        Start = "start",
        Stat = "stat",
        Sync = "write to the disk",
        TakePort = "take a port of",
        Talk = "talk on",
        Use = "use",
        Watch = "watch",
        Write = "write",
        ; Engine(calve_core::Operation)
    }
}
