//! Processes that go on when this one has ended.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, Mode, OFlags};

use crate::sys::open_at;

/// Starts `program __reap` in the background, which is expected to call [`reap`](crate::reap) with its standard input: the directory
/// `parent`, open, so that nothing can be put in its place. Whoever runs for long waits for the child when it has ended.
pub fn start_reaper(program: &Path, parent: &Path) -> io::Result<Child> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open_at(CWD, parent, flags, Mode::empty())?;
    start(program, "__reap", directory.into())
}

/// Starts `program __refill` in the background, which is expected to call [`Spares::refill`](crate::Spares::refill).
pub fn start_refill(program: &Path) -> io::Result<Child> {
    start(program, "__refill", Stdio::null())
}

/// Starts `program __watch` in the background, which is expected to call [`Spares::watch`](crate::Spares::watch).
pub fn start_watcher(program: &Path) -> io::Result<Child> {
    start(program, "__watch", Stdio::null())
}

/// Starts `program what`, detached from this process's output. Does nothing between fork and exec, so that the kernel need not copy this
/// process's memory, which takes 10 ms in a large process. The child leaves this process's session by itself.
fn start(program: &Path, what: &str, input: Stdio) -> io::Result<Child> {
    Command::new(program).arg(what).stdin(input).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/").spawn()
}
