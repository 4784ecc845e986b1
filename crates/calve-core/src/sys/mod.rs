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
pub use unix::unescape;
pub(crate) use unix::*;

pub(crate) use rustix::io::{Result, retry_on_intr as retry};

mod extent;
pub(crate) use extent::*;

/// How many files may be open at a time. A shell on macOS permits 256 to a program, where others start with 1,024.
pub(crate) const MOST_DESCRIPTORS: usize = if cfg!(target_os = "macos") { 160 } else { 256 };

/// The farthest time that an entry can be asked to have, on either side of 1970: macOS counts its nanoseconds in 64 bits.
pub(crate) const TIME_REACH_SECONDS: i64 = if cfg!(target_os = "macos") { 1 << 33 } else { 1 << 40 };

/// Returns the entries of a directory that is not large.
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

/// Reads the extended attributes whose names are wanted.
pub(crate) fn xattrs(target: XattrTarget<'_>, is_wanted: impl Fn(&CStr) -> bool) -> Result<BTreeMap<CString, Vec<u8>>> {
    let (mut names, mut value, mut found) = (Vec::new(), Vec::new(), BTreeMap::new());
    for name in xattr_names(list_xattrs(target, &mut names)?).filter(|name| is_wanted(name)) {
        match target.read(name, &mut value) {
            Ok(length) => _ = found.insert(name.to_owned(), value[..length].to_vec()),
            // It has just been removed, or is listed but not for this reader.
            Err(NO_ATTRIBUTE) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(found)
}

/// Returns a short word for this boot of the kernel.
pub(crate) fn boot_identity() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| word(boot().unwrap_or_default().as_ref()))
}

/// Returns a short word for this machine, the same after a restart.
pub(crate) fn machine_identity() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| match host() {
        Some(id) => word(id.as_ref()),
        None => word(rustix::system::uname().nodename().to_bytes()),
    })
}

/// Returns a hash as eight digits, for names. FNV-1a, 32 bits (Fowler, Noll, Vo): short, stable over versions, no secret.
fn word(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

/// The calls that the system has refused to a command.
#[cfg_attr(any(target_os = "macos", like_macos), allow(dead_code, reason = "only Linux has it"))]
pub(crate) enum Denial {
    Namespaces,
    Overlay,
    /// The working directory, in the overlay.
    WorkingDirectory,
}

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
