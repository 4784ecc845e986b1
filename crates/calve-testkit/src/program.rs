//! Programs that a test makes and then runs.
//!
//! While a file is open for writing anywhere, it cannot be run (ETXTBSY). What one test has open for writing, a process that another
//! test starts at that moment has open too, until it has become another program. So a program that this process has written may not
//! be ready to be run, for a moment, now and then.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use crate::must::{feed, run};

/// Makes a program of `contents` at `path`, which every user may run. Another process writes it, so that it is not open for writing here.
pub fn write_program(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) {
    let mut command = Command::new("sh");
    feed(command.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path.as_ref()), contents.as_ref());
}

/// Copies a program, as [`write_program`] does it.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    run(Command::new("install").args(["-m", "755", "--"]).arg(from.as_ref()).arg(to.as_ref()));
}

/// Starts a program that was written by this very process, as soon as it can be.
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
