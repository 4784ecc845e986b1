//! Events of watches.

use std::ffi::CString;

/// A change of an entry of a watched directory, or (without a name) of the directory itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(any(target_os = "macos", like_macos), allow(dead_code, reason = "only Linux tells it so"))]
pub(crate) enum WatchEventKind {
    /// A file was opened; whether for writing is not told. Several that follow each other are told as one.
    Opened,
    /// Its contents or its metadata.
    Changed,
    /// It has this name since now: made, or linked.
    Made,
    /// It has this name since now: it was moved here.
    MovedHere,
    /// It was moved away from this name.
    MovedAway,
    Removed,
    /// The directory itself was moved or removed.
    DirectoryTaken,
    /// Nothing more comes from this watch.
    WatchEnded,
    /// The file system is gone.
    Unmounted,
    /// The queue was full, and events are lost.
    Overflow,
}

pub(crate) struct WatchEvent {
    pub(crate) watch: i32,
    pub(crate) happening: WatchEventKind,
    pub(crate) is_directory: bool,
    /// The number that both ends of a move have.
    pub(crate) cookie: u32,
    pub(crate) name: Option<CString>,
}
