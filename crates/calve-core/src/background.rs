//! Processes that outlive this one, and threads that do not disturb others.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, OFlags};

use crate::sys::open_at;

/// Starts `program __reap` in the background, which must call [`reap`](crate::reap) with its standard input: `parent`,
/// open, so that nothing can replace it. A long-running caller should wait for the child once it has ended.
pub fn start_reaper(program: &Path, parent: &Path) -> io::Result<Child> {
    let directory = open_at(CWD, parent, OFlags::RDONLY | OFlags::DIRECTORY)?;
    start(program, &["__reap"], directory.into())
}

/// Starts `program words` in the background. There `__refill` calls [`Spares::refill`](crate::spares::Spares::refill),
/// and `__watch` calls [`Spares::watch`](crate::spares::Spares::watch).
pub fn start_background(program: &Path, words: &[&str]) -> io::Result<Child> {
    start(program, words, Stdio::null())
}

/// Does nothing between fork and exec, so the kernel need not copy this process's memory (10 ms in a large one).
fn start(program: &Path, words: &[&str], input: Stdio) -> io::Result<Child> {
    Command::new(program).args(words).stdin(input).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/").spawn()
}

/// Makes the calling thread and those it starts run, and use the disk, only when no other process wants to. On systems
/// that know this for processes only, such as macOS, affects the whole process.
pub fn lower_priority() {
    crate::sys::lower_priority();
}
