//! Running the `calve` program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::Semaphore;

use super::result::Problem;

/// How many run at a time: agents call several tools at once.
const AT_A_TIME: usize = 4;

pub(super) struct Program {
    path: PathBuf,
    turns: Semaphore,
}

/// What a run printed.
pub(super) struct Printed {
    pub(super) stdout: Vec<u8>,
    /// Prose for people.
    pub(super) prose: String,
}

impl Program {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, turns: Semaphore::new(AT_A_TIME) }
    }

    /// Runs a command line in a directory, and returns the JSON document that it prints.
    pub(super) async fn json<A: AsRef<OsStr>>(&self, place: &Path, arguments: &[A]) -> Result<Value, Problem> {
        let printed = self.run(place, arguments, b"").await?;
        serde_json::from_slice(&printed.stdout).map_err(|_| unexpected())
    }

    /// Runs a command line in a directory. It ends when the call is dropped.
    pub(super) async fn run<A: AsRef<OsStr>>(
        &self,
        place: &Path,
        arguments: &[A],
        input: &[u8],
    ) -> Result<Printed, Problem> {
        let _turn = self.turns.acquire().await.map_err(|_| unexpected())?;
        let mut command = Command::new(&self.path);
        command.args(arguments).current_dir(place).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error: std::io::Error| Problem::new(format!("calve could not be run: {error}"), "try again");
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not want it has ended, or will not read it.
            let _ = stdin.write_all(input).await;
        }
        let output = child.wait_with_output().await.map_err(failed)?;
        let prose = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok(Printed { stdout: output.stdout, prose }),
            false => Err(Problem::told(&prose)),
        }
    }
}

fn unexpected() -> Problem {
    Problem::new(
        "calve printed something unexpected",
        "call `calve --version`: the server may be older than the program",
    )
}
