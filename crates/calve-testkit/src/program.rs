//! Programs that a test writes and then runs.
//!
//! A file that is open for writing anywhere cannot be run (ETXTBSY). When another test starts a process, the child
//! holds this process's open files until its exec. So a program written by this process may, now and then, be busy for
//! a moment.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use crate::must::{feed, run};

/// Writes an executable program at `path`. Another process writes it, so that it is never open for writing here.
pub fn write_program(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) {
    let mut command = Command::new("sh");
    feed(command.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path.as_ref()), contents.as_ref());
}

/// Copies a program in another process, like [`write_program`].
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    run(Command::new("install").args(["-m", "755", "--"]).arg(from.as_ref()).arg(to.as_ref()));
}

/// Starts a program that this very process has written, retrying while it is busy.
pub fn spawn_written(command: &mut Command) -> Child {
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        match command.spawn() {
            Ok(child) => return child,
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < give_up => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("cannot run {command:?}: {error}"),
        }
    }
}
