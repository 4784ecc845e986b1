use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use calve_core::internal::ShownPath;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::documents::Problem;

/// Set for each command, so that hints suit an agent, which cannot pass options.
pub const HINTS_FOR_AGENT: &str = "CALVE_HINTS_FOR_AGENT";

/// Most commands at a time; agents call several tools at once.
const AT_A_TIME: u32 = 4;

/// Time for a child to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// Time to wait for output after a child has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

pub(super) struct Program {
    path: PathBuf,
    pub(super) turns: Arc<Semaphore>,
}

impl Program {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, turns: Arc::new(Semaphore::new(AT_A_TIME as usize)) }
    }

    /// Waits, up to [`GRACE`], for terminated commands.
    pub(super) async fn ended(turns: Arc<Semaphore>) {
        let _ = timeout(GRACE, turns.acquire_many(AT_A_TIME)).await;
    }

    pub(super) async fn json(&self, directory: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<Value, Problem> {
        let printed = self.run(directory, arguments, b"").await?;
        serde_json::from_slice(&printed.stdout).map_err(|_| unexpected())
    }

    /// Runs a command, and ends it when the call is dropped.
    pub(super) async fn run<A: AsRef<OsStr>>(
        &self,
        directory: &Path,
        arguments: &[A],
        input: &[u8],
    ) -> Result<Output, Problem> {
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| unexpected())?;
        let mut command = Command::new(&self.path);
        command.args(arguments).current_dir(directory).env(HINTS_FOR_AGENT, "1").kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error: std::io::Error| {
            let hint = match directory.is_dir() {
                true => "try again: another version of calve may just have been installed",
                false => "check that path",
            };
            Problem::new(format!("cannot run calve in `{}`: {error}", ShownPath(directory)), hint)
        };
        let child = command.spawn().map_err(failed)?;
        let (_waits, dropped) = oneshot::channel();
        let input = input.to_vec();
        let run = tokio::spawn(async move {
            let output = output(child, &input, dropped).await;
            drop(turn);
            output
        });
        let output = run.await.map_err(|_| unexpected())?.map_err(failed)?;
        let printed = || Problem::from_prose(&String::from_utf8_lossy(&output.stderr));
        match output.status.success() {
            true => Ok(output),
            false => Err(Problem::documented(&output.stdout).unwrap_or_else(printed)),
        }
    }
}

/// Waits for a child. If the caller gives up, sends SIGTERM, so that the child undoes its unfinished work.
async fn output(mut child: Child, input: &[u8], dropped: oneshot::Receiver<()>) -> std::io::Result<Output> {
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let [printed, said] = [(); 2].map(|()| Kept::new(Mutex::new(Some(Vec::new()))));
    let reading = [tokio::spawn(keep(stdout, printed.clone())), tokio::spawn(keep(stderr, said.clone()))];
    let ended = async move {
        let give = async {
            if let Some(mut stdin) = stdin {
                // The child may have ended, or may ignore its input.
                let _ = stdin.write_all(input).await;
            }
        };
        let (status, ()) = tokio::join!(child.wait(), give);
        // A hook's background process may hold the pipes open forever.
        let _ = timeout(LAST_WORDS, async {
            for one in reading {
                let _ = one.await;
            }
        })
        .await;
        Ok(Output { status: status?, stdout: taken(&printed), stderr: taken(&said) })
    };
    tokio::pin!(ended);
    tokio::select! {
        output = &mut ended => output,
        _ = dropped => {
            // The child has not been reaped, so its pid has not been reused.
            if let Some(pid) = pid {
                let _ = kill_process(pid, Signal::TERM);
            }
            timeout(GRACE, ended).await?
        }
    }
}

/// A stream's bytes until they are taken.
type Kept = Arc<Mutex<Option<Vec<u8>>>>;

/// Reads a stream to its end, even after its bytes were taken, so that the writer never blocks.
async fn keep(stream: Option<impl AsyncRead + Unpin>, kept: Kept) {
    let Some(mut stream) = stream else { return };
    let mut part = [0; 16 << 10];
    while let Ok(length @ 1..) = stream.read(&mut part).await {
        if let Some(kept) = &mut *kept.lock().unwrap_or_else(PoisonError::into_inner) {
            kept.extend_from_slice(&part[..length]);
        }
    }
}

fn taken(kept: &Kept) -> Vec<u8> {
    kept.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
}

fn unexpected() -> Problem {
    Problem::new(
        "calve printed something unexpected",
        "call `calve --version`: the server may be older than the program",
    )
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_it_leaves_in_the_background_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let output = runtime.block_on(async {
            let words = ["-c", "echo printed; echo said >&2; sleep 600 & echo $! >pid"];
            Program::new("/bin/sh".into()).run(place.path(), &words, b"").await.unwrap()
        });
        assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"printed\n"[..], &b"said\n"[..]));
        let pid = fs_err::read_to_string(place.path().join("pid")).unwrap().trim_end().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }

    #[test]
    fn a_path_is_to_be_checked_only_if_it_is_not_there() {
        let place = tempfile::tempdir().unwrap();
        let (gone, words): (_, [&str; 0]) = (place.path().join("gone"), []);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let hint = |program: &str, directory: &Path| {
            let ran = runtime.block_on(Program::new(program.into()).run(directory, &words, b""));
            ran.err().unwrap().hint
        };
        assert_eq!(hint("/bin/sh", &gone), "check that path");
        assert!(hint(gone.to_str().unwrap(), place.path()).starts_with("try again"));
    }

    #[test]
    fn one_that_nobody_waits_for_takes_back_what_it_has_begun() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("program");
        let script =
            "#!/bin/sh\ntrap 'rm begun; echo gone >taken-back; exit 1' TERM\n: >begun\nwhile :; do sleep 0.01; done\n";
        fs_err::write(&path, script).unwrap();
        fs_err::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let program = Program::new(path);
            let begun = async {
                while !place.path().join("begun").exists() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let words: [&str; 0] = [];
            tokio::select! {
                _ = program.run(place.path(), &words, b"") => panic!("it has ended by itself"),
                () = begun => {}
            }
            Program::ended(program.turns.clone()).await;
        });
        assert!(place.path().join("taken-back").exists() && !place.path().join("begun").exists());
    }
}
