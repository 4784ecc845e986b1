//! Processes that go on when this one has ended, and threads that others do not feel.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, OFlags};

use crate::sys::open_at;

/// Starts `program __reap` in the background, which is expected to call [`reap`](crate::reap) with its standard input: the directory
/// `parent`, open, so that nothing can be put in its place. A caller that runs for long waits for the child when it has ended.
pub fn start_reaper(program: &Path, parent: &Path) -> io::Result<Child> {
    let directory = open_at(CWD, parent, OFlags::RDONLY | OFlags::DIRECTORY)?;
    start(program, &["__reap"], directory.into())
}

/// Starts `program words` in the background. In the program, `__refill` calls [`Spares::refill`](crate::spares::Spares::refill), and
/// `__watch` calls [`Spares::watch`](crate::spares::Spares::watch).
pub fn start_background(program: &Path, words: &[&str]) -> io::Result<Child> {
    start(program, words, Stdio::null())
}

/// Starts `program words` detached. Does nothing between fork and exec, so the kernel need not copy this process's memory (10 ms in a large one).
fn start(program: &Path, words: &[&str], input: Stdio) -> io::Result<Child> {
    Command::new(program).args(words).stdin(input).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/").spawn()
}

/// Makes the calling thread, and those that it starts, ones that are not felt: they run when nothing else does, and get the disk when
/// no other process wants it. Where a system knows that for processes only, as macOS does, it is the whole process.
pub fn lower_priority() {
    crate::sys::lower_priority();
}
