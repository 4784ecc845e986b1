//! Calve uses no watches on macOS.

use std::os::fd::BorrowedFd;

use rustix::io::{Errno, Result};

use crate::sys::WatchEvent;

pub(crate) enum Watches {}

impl Watches {
    pub(crate) fn new() -> Result<Self> {
        Err(Errno::NOSYS)
    }

    pub(crate) fn add(&self, _directory: BorrowedFd<'_>) -> Result<i32> {
        match *self {}
    }

    pub(crate) fn remove(&self, _watch: i32) {
        match *self {}
    }

    pub(crate) fn drain(&mut self, _each: impl FnMut(WatchEvent)) -> Result<()> {
        match *self {}
    }

    pub(crate) fn queue(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}

absent! {
    fn most_watches() -> usize = 0;
    fn tells_watches(_directory: BorrowedFd<'_>) -> bool = false;
    fn lease(_file: BorrowedFd<'_>) -> Result<()> = Err(Errno::NOSYS);
}
