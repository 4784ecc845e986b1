//! The only home of platform code and of `unsafe`: one file per system, with equal signatures.

#![allow(unsafe_code)]

#[cfg(all(target_os = "linux", not(like_macos)))]
mod linux;
#[cfg(all(target_os = "linux", not(like_macos)))]
pub(crate) use linux::*;

// `like_macos`: macOS's code on Linux, above a stand-in for its kernel (scripts/test-like-macos).
#[cfg(any(target_os = "macos", like_macos))]
mod macos;
#[cfg(any(target_os = "macos", like_macos))]
pub(crate) use macos::*;

/// The common part of macOS and of the systems that are not supported, which have nothing of their own.
#[cfg(all(unix, any(not(target_os = "linux"), like_macos)))]
mod portable;

#[cfg(all(unix, not(any(target_os = "linux", target_os = "macos"))))]
mod unsupported;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "macos"))))]
pub(crate) use unsupported::*;

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::*;

#[cfg(all(unix, any(not(target_os = "linux"), like_macos)))]
mod no_extents;
#[cfg(all(unix, any(not(target_os = "linux"), like_macos)))]
pub(crate) use no_extents::*;

#[cfg(all(unix, any(not(target_os = "linux"), like_macos)))]
mod no_watches;
#[cfg(all(unix, any(not(target_os = "linux"), like_macos)))]
pub(crate) use no_watches::*;

#[cfg(unix)]
mod watch_event;
#[cfg(unix)]
pub(crate) use watch_event::*;

#[cfg(unix)]
mod overlay_paths;
#[cfg(unix)]
pub(crate) use overlay_paths::*;

#[cfg(unix)]
mod network;
#[cfg(unix)]
pub use network::Network;

#[cfg(unix)]
mod extent;
#[cfg(unix)]
pub(crate) use extent::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::*;

/// How many files may be open at a time. A shell on macOS permits 256 to a program, where others start with 1,024.
pub(crate) const MOST_DESCRIPTORS: usize = if cfg!(target_os = "macos") { 160 } else { 256 };

/// Hashes with FNV-1a, 32 bits (Fowler, Noll, Vo): short, stable over versions, no secret.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Returns the hash as eight digits, for names.
fn word(bytes: &[u8]) -> String {
    format!("{:08x}", hash(bytes))
}

/// How several threads make files best.
#[cfg(unix)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(any(not(target_os = "linux"), like_macos), allow(dead_code, reason = "it was measured on Linux"))]
pub(crate) enum CreationPattern {
    /// Each makes and writes its own, in one directory too.
    SideBySide,
    /// In one directory one of two makes them and the other writes them.
    HandedOver,
    /// The file system makes one at a time, whatever directory it is in, and those who wait for that cost more than they do.
    OneAtATime,
}
