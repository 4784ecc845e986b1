//! The only home of platform code and of `unsafe`: one file per system, with equal signatures.

#![allow(unsafe_code)]

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub(crate) use macos::*;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod unsupported;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(crate) use unsupported::*;

/// openat(2), repeated when a signal interrupts it: FUSE and network file systems let that happen.
pub(crate) fn open_at(directory: impl AsFd, name: impl Arg + Copy, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    retry(|| rustix::fs::openat(directory.as_fd(), name, flags, mode))
}

/// Repeats a call until no signal interrupts it.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// FNV-1a, 32 bits (Fowler, Noll, Vo): short, stable over versions, no secret.
fn word(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}
