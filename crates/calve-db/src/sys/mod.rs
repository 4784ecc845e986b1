//! The only home of platform code and of `unsafe` in this crate: one folder or file per system, with equal signatures.

#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::*;
#[cfg(not(target_os = "linux"))]
mod unwatched;
#[cfg(not(target_os = "linux"))]
pub(crate) use unwatched::*;

use std::ffi::CString;
use std::os::fd::BorrowedFd;

/// How a server is to be started.
pub(crate) struct Launch<'a> {
    /// The program's path, then its arguments.
    pub(crate) command: Vec<CString>,
    /// All of its environment, as `NAME=VALUE`.
    pub(crate) environment: Vec<CString>,
    /// Where it runs.
    pub(crate) directory: CString,
    /// What becomes its standard output and standard error.
    pub(crate) log: BorrowedFd<'a>,
    /// What becomes its standard input.
    pub(crate) input: BorrowedFd<'a>,
    /// The user and group that it becomes, when this process is root.
    pub(crate) account: Option<(u32, u32)>,
    /// Whether it is the first process of a process namespace, which ends with it.
    #[allow(dead_code, reason = "only Linux has such namespaces")]
    pub(crate) own_processes: bool,
}
