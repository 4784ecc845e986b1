//! The only home of platform code and of `unsafe`: one file per system, with equal signatures.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

/// Defines calls that this system does not have, each with its constant answer.
macro_rules! absent {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $returned:ty = $answer:expr;)*) => {
        $($(#[$doc])* pub(crate) fn $name($($argument: $type),*) -> $returned { $answer })*
    };
}

#[cfg(all(target_os = "linux", not(like_macos)))]
mod linux;
#[cfg(all(target_os = "linux", not(like_macos)))]
pub(crate) use linux::*;

// `like_macos`: macOS's code on Linux, above a stand-in for its kernel (scripts/steps/like-macos).
#[cfg(any(target_os = "macos", like_macos))]
mod macos;
#[cfg(any(target_os = "macos", like_macos))]
pub(crate) use macos::*;

mod unix;
pub(crate) use unix::*;
pub use unix::{times, unescape};

pub(crate) use rustix::io::{Result, retry_on_intr as retry};

mod extent;
pub(crate) use extent::*;

/// Most files open at a time. A macOS shell allows a program 256, others 1,024.
pub(crate) const MOST_DESCRIPTORS: usize = if cfg!(target_os = "macos") { 160 } else { 256 };

/// Largest distance from 1970 that a timestamp can be set to: macOS counts its nanoseconds in 64 bits.
pub(crate) const TIME_REACH_SECONDS: i64 = if cfg!(target_os = "macos") { 1 << 33 } else { 1 << 40 };

/// Returns all entries of a directory, for small ones.
pub(crate) fn list(directory: BorrowedFd<'_>) -> Result<Vec<(CString, rustix::fs::FileType)>> {
    let mut buffer = ListingBuffer::new();
    let mut listing = Listing::new(directory, &mut buffer)?;
    let mut found = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = entry?;
        found.push((entry.name.to_owned(), entry.kind));
    }
    Ok(found)
}

pub(crate) fn xattrs(target: XattrTarget<'_>, is_wanted: impl Fn(&CStr) -> bool) -> Result<BTreeMap<CString, Vec<u8>>> {
    let (mut names, mut value, mut found) = (Vec::new(), Vec::new(), BTreeMap::new());
    for name in xattr_names(list_xattrs(target, &mut names)?).filter(|name| is_wanted(name)) {
        match target.read(name, &mut value) {
            Ok(length) => _ = found.insert(name.to_owned(), value[..length].to_vec()),
            // Removed meanwhile, or listed although this reader may not have it.
            Err(NO_ATTRIBUTE) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(found)
}

pub(crate) fn boot_identity() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| word(boot().unwrap_or_default().as_ref()))
}

/// Returns a short id of this machine that survives restarts.
pub(crate) fn machine_identity() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| match host() {
        Some(id) => word(id.as_ref()),
        None => word(rustix::system::uname().nodename().to_bytes()),
    })
}

/// Returns an eight-digit hash for names: FNV-1a, 32 bits (Fowler, Noll, Vo). Stable over versions, no secret.
fn word(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

/// A call that the system refused to a command.
#[derive(Clone, Copy)]
#[cfg_attr(any(target_os = "macos", like_macos), allow(dead_code, reason = "only Linux has it"))]
pub(crate) enum Denial {
    Namespaces,
    Overlay,
    /// Entering the working directory, in the overlay.
    WorkingDirectory,
}

/// A change to an entry of a watched directory or, without a name, to the directory itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(any(target_os = "macos", like_macos), allow(dead_code, reason = "only Linux tells it so"))]
pub(crate) enum WatchEventKind {
    /// A file was opened, for reading or writing. Consecutive ones are merged.
    Opened,
    /// Contents or metadata.
    Changed,
    /// Created, or linked under this name.
    Made,
    MovedHere,
    MovedAway,
    Removed,
    /// The watched directory itself was moved or removed.
    DirectoryTaken,
    WatchEnded,
    Unmounted,
    /// The queue was full: events are lost.
    Overflow,
}

pub(crate) struct WatchEvent {
    pub(crate) watch: i32,
    pub(crate) happening: WatchEventKind,
    pub(crate) is_directory: bool,
    /// Shared by both ends of a move.
    pub(crate) cookie: u32,
    pub(crate) name: Option<CString>,
}
