//! Operations that can fail.

calve_core::operations! {
    /// An operation that failed. Displayed, it is a verb phrase that a path follows.
    pub enum Operation {
        Create = "create",
        Delete = "delete",
        List = "list",
        Lock = "lock",
        Open = "open",
        Read = "read",
        Rename = "rename",
        RenameTo = "rename to",
        Resolve = "resolve",
        SetSize = "set the size of",
        ShareLock = "share the lock for",
        Stat = "look at",
        StatFileSystem = "look at the file system of",
        Sync = "sync",
        Write = "write",
    }
}
